"""Environment variables through which a driver, a runner and the user's code share facts."""

from __future__ import annotations

TRIAL_DIR = "SPEARMINT_TRIAL_DIR"
"""Folder for a trial's own files; also marks the trial's processes."""

REPORTS_FILE = "SPEARMINT_REPORTS"
"""File of lines ``step,value``."""

REGION = "SPEARMINT_REGION"
"""Region of the trial; empty where there are none."""

LOCK_FD = "SPEARMINT_LOCK_FD"
"""Number of the inherited file descriptor that holds the trial's lock; may be unset."""

DONE_FILE = "SPEARMINT_DONE_FILE"
"""File that the runner creates when the result is written; may be unset."""

RETRY_S = "SPEARMINT_RETRY_S"
"""Seconds during which file operations that fail are retried; unset: none."""

PENDING_DIR = "SPEARMINT_PENDING_DIR"
"""Directory of the trials that a pilot job may run next; only set for pilots."""

JOB_ID_VARIABLE = "SPEARMINT_JOB_ID_VARIABLE"
"""Name of the variable in which the queue puts the id of the job; only set for pilots."""

RERUN_EXIT_CODE = "SPEARMINT_RERUN_EXIT_CODE"
"""Exit code by which a job asks its queue to run it again; unset: the queue has none."""

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Numbers of threads of numerical libraries."""
