"""Run 0-second trials on each queue of the test bed, and what others use there.

``python -m benchmarks.queue_peers --peers PYTHON`` measures, as root, trials per second at 8 slots
and the pause between two trials on a single slot. PYTHON is that of a virtual environment with the
peers, which this project does not depend on::

    python -m venv /tmp/peers
    /tmp/peers/bin/pip install submitit dask-jobqueue 'celery[redis]'
    python -m benchmarks.queue_peers --peers /tmp/peers/bin/python
    python -m benchmarks.queue_peers --pauses  # only of spearmint
"""
