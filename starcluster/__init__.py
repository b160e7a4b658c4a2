"""EC2 GPU clusters: the ``starcluster`` command, its plugin API (not built yet)."""
