"""Errors of the condor_jobs package.

CondorJobsError         exit code 1
├── InputError          exit code 2: invalid input
├── SubmitError         HTCondor refused a job, or does not answer
└── NodeFailed          a node of a DAG failed
"""

from __future__ import annotations


class CondorJobsError(Exception):
    """Base of all errors of this package: ``what`` happened and how to ``fix`` it."""

    exit_code = 1

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.what}\n{self.fix}" if self.fix else self.what


class InputError(CondorJobsError):
    """An option or argument is invalid; nothing was submitted."""

    exit_code = 2


class SubmitError(CondorJobsError):
    """HTCondor refused a job, or does not answer."""


class NodeFailed(CondorJobsError):
    """A node of a DAG failed; the DAG continues with what does not need it."""
