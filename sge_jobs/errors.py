"""Errors of the sge_jobs package.

SgeJobsError            exit code 1
├── InputError          exit code 2: the user can fix it
├── SubmitError         Grid Engine refused a job
├── QueueUnreachable    no answer from the master; the state of all jobs is unknown
└── CellError           a change to the cell was refused
"""

from __future__ import annotations


class SgeJobsError(Exception):
    """What happened and how to fix it; base of all errors of this package."""

    exit_code = 1

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.what}\n{self.fix}" if self.fix else self.what


class InputError(SgeJobsError):
    """Wrong command line or argument; nothing was sent to Grid Engine."""

    exit_code = 2


class SubmitError(SgeJobsError):
    """Grid Engine refused a job."""


class QueueUnreachable(SgeJobsError):
    """Grid Engine did not answer; the state of all jobs is unknown."""


class CellError(SgeJobsError):
    """Grid Engine refused a change of its configuration."""
