"""Trials as tasks of dask-jobqueue on Slurm: one worker process for each slot."""

from __future__ import annotations

import os

from dask_jobqueue import SLURMCluster
from distributed import Client

from benchmarks.peers.queue_trial import arguments, trial


def main() -> None:
    """Run the trials; the start of the workers counts, as that of pilots does."""
    folder, trials, seconds, slots = arguments()
    os.chdir(folder)
    cluster = SLURMCluster(
        cores=1, processes=1, memory="400MB", interface="eth0", log_directory=str(folder)
    )
    cluster.scale(jobs=slots)
    with cluster, Client(cluster) as client:
        futures = [
            client.submit(trial, str(folder / "records"), seconds, pure=False)
            for _ in range(trials)
        ]
        client.gather(futures)


if __name__ == "__main__":
    main()
