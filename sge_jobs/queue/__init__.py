"""Submit, list and delete jobs; only this folder runs qsub, qstat, qdel, qacct and qhost."""

from sge_jobs.queue.qsub import job_name, job_script, qsub_argv
from sge_jobs.queue.queue import Queue

__all__ = ["Queue", "job_name", "job_script", "qsub_argv"]
