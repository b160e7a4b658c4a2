"""Trials as jobs of submitit on Slurm: one array, or one sbatch for each."""

from __future__ import annotations

import os
import sys

import submitit

from benchmarks.peers.queue_trial import arguments, trial


def main(how: str) -> None:
    """Run the trials."""
    folder, trials, seconds, slots = arguments()
    os.chdir(folder)
    executor = submitit.SlurmExecutor(folder=folder / "logs")
    executor.update_parameters(time=60, cpus_per_task=1, array_parallelism=slots, use_srun=False)
    records = str(folder / "records")
    if how == "array":
        jobs = executor.map_array(trial, [records] * trials, [seconds] * trials)
    else:
        jobs = [executor.submit(trial, records, seconds) for _ in range(trials)]
    for job in jobs:
        job.result()


if __name__ == "__main__":
    main(sys.argv[5])
