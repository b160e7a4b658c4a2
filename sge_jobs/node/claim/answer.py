"""The answer of root to a job: a file in the job's spool directory, which users cannot write.

The starter of the job, a process of the user, reads it. It only tells the job what to do: who has a
GPU is in the file of the GPU.
"""

from __future__ import annotations

import os
from _thread import RLock  # the import of threading takes longer

from sge_jobs.node.gpus.inventory import read_text, valid_uuid, write_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

AS_ROOT = RLock()
"""Held by a thread while it needs the rights of root: ``write_in`` changes those of all threads."""

NAME = "sge_jobs"
_TITLE = "sge_jobs answer 1"


class Answer:
    """The GPUs of a job, or why it cannot run on this host.

    Attributes:
        gpus: UUIDs; empty for a job without GPUs.
        variables: Further variables of the job, with which it uses its share of a GPU.
        code: Exit code for Grid Engine; 0 if the job can run.
        what: Why it cannot run.
        shepherd: Pid of the shepherd of this run of the job.
    """

    __slots__ = ("code", "gpus", "shepherd", "variables", "what")

    def __init__(
        self,
        gpus: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
        *,
        code: int = 0,
        what: str = "",
        shepherd: int = 0,
    ) -> None:
        self.shepherd = shepherd
        self.gpus = list(gpus)
        self.variables = dict(variables or {})
        self.code = code
        self.what = what


def write_answer(spool: str, answer: Answer) -> None:
    """Write ``answer`` into the spool directory, as its owner. Raises OSError."""
    pairs = [f"{name}={value}" for name, value in answer.variables.items()]
    lines = [_TITLE, f"shepherd {answer.shepherd}", f"code {answer.code}"]
    lines += [f"gpus {' '.join(answer.gpus)}", f"set {' '.join(pairs)}", answer.what, "end", ""]
    write_in(spool, NAME, "\n".join(lines))


def write_in(spool: str, name: str, text: str) -> None:
    """Write a file into the spool directory of a job, as the directory's owner. Raises OSError."""
    with AS_ROOT:
        owner, before = os.stat(spool).st_uid, os.geteuid()
        # The directory can be on a file system where root has no rights.
        if before == 0 and owner:
            os.seteuid(owner)
        try:
            write_whole(f"{spool}/{name}", text)
        finally:
            os.seteuid(before)


def read_answer(spool: str) -> Answer | None:
    """Return the answer in the spool directory; None without a complete one."""
    try:
        lines = read_text(f"{spool}/{NAME}").split("\n")
    except OSError:
        return None
    if len(lines) < 8 or lines[0] != _TITLE or lines[-2:] != ["end", ""]:
        return None
    fields = dict(line.partition(" ")[::2] for line in lines[1:5])
    code, shepherd = fields.get("code", ""), fields.get("shepherd", "")
    gpus = fields.get("gpus", "").split()
    if not (code.isdigit() and shepherd.isdigit() and all(map(valid_uuid, gpus))):
        return None
    variables = dict(pair.partition("=")[::2] for pair in fields.get("set", "").split())
    what = "\n".join(lines[5:-2])
    return Answer(gpus, variables, code=int(code), what=what, shepherd=int(shepherd))
