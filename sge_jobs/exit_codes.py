"""Exit codes by which a job, or the starter before it, tells Grid Engine what to do with it."""

RESCHEDULE = 99
"""Queue the job again."""

JOB_ERROR = 100
"""Put the job into the error state, where it waits for a person."""
