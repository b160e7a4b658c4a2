"""EC2 GPU clusters: the ``starcluster`` command, its configuration and plugin API (not built yet)."""
