"""EC2 GPU clusters: the ``starcluster`` command and its plugin API.

Plugins import from ``starcluster.clustersetup``, ``starcluster.logger``, ``starcluster.exception``,
``starcluster.utils`` and ``starcluster.threadpool``, as they did in the original; their tests from
``starcluster.testing``. Everything else is behind the doors of the folders.
"""
