"""Exit codes of a job or its starter that tell Grid Engine what to do next."""

RESCHEDULE = 99
"""Put the job back into the queue."""

JOB_ERROR = 100
"""Put the job into the error state, until a user clears it with ``qmod -cj``."""
