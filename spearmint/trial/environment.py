"""Environment variables that a driver, a runner and the user's code share."""

from __future__ import annotations

TRIAL_DIR = "SPEARMINT_TRIAL_DIR"
"""Folder for the files of a trial; also marks the trial's processes."""

MODEL_DIR = "SPEARMINT_MODEL_DIR"
"""Directory for the model of a final training; unset in trials."""

REPORTS_FILE = "SPEARMINT_REPORTS"
"""File of lines ``step,value``."""

REGION = "SPEARMINT_REGION"
"""Region of the trial; empty without regions."""

STEPS_DONE = "SPEARMINT_STEPS_DONE"
"""Steps of the parts of the trial before this one; unset without a block ``fidelity``."""

STEPS_UNTIL = "SPEARMINT_STEPS_UNTIL"
"""Step after which this part of the trial ends; unset without a block ``fidelity``."""

RANK = "SPEARMINT_RANK"
"""Rank of this process among those that torchrun started for the trial; unset otherwise."""

PLACE = "SPEARMINT_PLACE"
"""Which ranks of a trial run on this host, as JSON; only between processes of spearmint."""

LOCK_FD = "SPEARMINT_LOCK_FD"
"""Number of the inherited file descriptor that holds the trial's lock; may be unset."""

DONE_FILE = "SPEARMINT_DONE_FILE"
"""File that the runner creates when the result is written; may be unset."""

RETRY_S = "SPEARMINT_RETRY_S"
"""Seconds for which failed file operations are retried. Unset: no retries."""

PENDING_DIR = "SPEARMINT_PENDING_DIR"
"""Directory of the trials that a pilot job can run next; only set for pilots."""

JOB_ID_VARIABLE = "SPEARMINT_JOB_ID_VARIABLE"
"""Name of the variable in which the queue stores the job id; only set for pilots."""

JOB_IDS = ("JOB_ID", "SLURM_JOB_ID", "CONDOR_JOB_ID")
"""Variables in which queues store the job id; the runner records it for users."""

RERUN_EXIT_CODE = "SPEARMINT_RERUN_EXIT_CODE"
"""Exit code with which a job asks its queue for a rerun; unset if the queue has none."""

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Numbers of threads of numerical libraries."""

TRANSPORT_DONE = "SPEARMINT_TRANSPORT_DONE"
"""Done marker on the submit side, for a job on a host that does not share files with it."""

TRANSPORT_DATA = "SPEARMINT_TRANSPORT_DATA"
"""Name of the experiment's data in the cache of a host; unset if it has none."""

TRANSPORT_SPOOL = "SPEARMINT_TRANSPORT_SPOOL"
"""Directory from which another process sends what the job leaves there; unset if there is none."""

GPU_SAMPLE_S = "SPEARMINT_GPU_SAMPLE_S"
"""Seconds between two samples of the GPUs of a trial; 0 for none. Unset: 1."""
