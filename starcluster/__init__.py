"""EC2 GPU clusters: the ``starcluster`` command and its plugin API.

Plugins import from ``starcluster.clustersetup``, ``starcluster.logger``, ``starcluster.exception``,
``starcluster.utils`` and ``starcluster.threadpool``, as in the original; their tests import from
``starcluster.testing``. Each subpackage exports its own public names.
"""
