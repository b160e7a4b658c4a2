"""Errors of the sge_jobs package.

SgeJobsError            exit code 1
├── InputError          exit code 2: invalid input
├── SubmitError         Grid Engine refused a job
│   └── QueueFull       because of a limit on the number of jobs
├── QueueUnreachable    the master does not respond; the state of all jobs is unknown
└── CellError           Grid Engine refused a change of the cell
"""

from __future__ import annotations


class SgeJobsError(Exception):
    """Base of all errors of this package: ``what`` happened and how to ``fix`` it."""

    exit_code = 1

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.what}\n{self.fix}" if self.fix else self.what


class InputError(SgeJobsError):
    """An option or argument is invalid; nothing was sent to Grid Engine."""

    exit_code = 2


class SubmitError(SgeJobsError):
    """Grid Engine refused a job."""


class QueueFull(SubmitError):
    """Grid Engine refused a job because of a limit on the number of jobs."""


class QueueUnreachable(SgeJobsError):
    """Grid Engine did not respond; the state of all jobs is unknown."""


class CellError(SgeJobsError):
    """Grid Engine refused a change of its configuration."""
