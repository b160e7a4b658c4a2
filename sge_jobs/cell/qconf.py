"""Read and change the configuration of the cell; only this class changes it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sge_jobs.cell.changes import Change
from sge_jobs.cell.gpu_counts import gpu_counts
from sge_jobs.cell.qconf_text import Attributes, CellConfig, parse_attributes, parse_queues
from sge_jobs.errors import CellError, InputError
from sge_jobs.model import Host
from sge_jobs.queue.commands import Answer, Commands, access_fix

_MOST_GROUPS = 8
_NOT_MANAGER = re.compile(r"must be (a )?manager|is no admin(istrative)? host|not an admin", re.I)


class Qconf:
    """Reads and changes the configuration; changes require a manager on an administrative host."""

    def __init__(self, *, programs: Path | None = None, timeout_s: float = 30.0) -> None:
        self._commands = Commands(programs=programs, timeout_s=timeout_s)

    def read(self, queues: Sequence[str]) -> CellConfig:
        """Return the cell with ``queues``; InputError if one of them does not exist."""
        known = self._names("-sql")
        for queue in queues:
            if queue not in known:
                names = ", ".join(known) or "none"
                raise InputError(f"no queue {queue}", f"Choose one of {names}: --queue NAME")
        return CellConfig(
            complexes=self._show("-sc"),
            callers=(*self._names("-sh"), *self._names("-ss")),
            hosts={name: self._attributes("-se", name) for name in self._names("-sel")},
            queues={name: self._attributes("-sq", name) for name in queues},
            parallel_environments={
                name: self._attributes("-sp", name) for name in self._names("-spl")
            },
            scheduler=self._attributes("-ssconf"),
            configuration=self._attributes("-sconf", "global"),
            local={name: self._attributes("-sconf", name) for name in self._names("-sconfl")},
        )

    def overview(self, hosts: Sequence[Host]) -> CellConfig:
        """Return what a diagnosis of ``hosts`` needs, in at most 25 calls for any number of hosts.

        Of the attributes of hosts, it contains only the number of GPUs.
        """
        lost = any(not host.reachable for host in hosts)
        groups = self._names("-shgrpl")[:_MOST_GROUPS] if lost else []
        queues = self._commands.run("qconf", "-sq", "*")
        return CellConfig(
            complexes=self._show("-sc"),
            callers=(*self._names("-sh"), *self._names("-ss")),
            hosts=gpu_counts(hosts, self._hosts_with, self._attributes),
            queues=parse_queues(queues.out if queues.status == 0 else ""),
            configuration=self._attributes("-sconf", "global"),
            host_groups={name: self._attributes("-shgrp", name) for name in groups},
        )

    def _hosts_with(self, complex_values: str) -> list[str]:
        return self._names("-sobjl", "exechost", "complex_values", complex_values)

    def queues(self) -> list[str]:
        """Return the names of the cluster queues."""
        return self._names("-sql")

    def submit_hosts(self) -> list[str]:
        """Return the hosts from which jobs can be submitted."""
        return self._names("-ss")

    def managers(self) -> list[str]:
        """Return the managers of the cell."""
        return list(self._names("-sm"))

    def apply(self, change: Change) -> None:
        """Make one change; CellError with the message of qconf if it is refused."""
        answer = self._call(change, change.text)
        if answer.status and "qsort_args" in answer.words:  # this version has no such attribute
            kept = [line for line in change.text.splitlines(True) if "qsort_args" not in line]
            answer = self._call(change, "".join(kept))
        if answer.status:
            fix = "Run this as a manager of the cell (listed by qconf -sm), on its master."
            not_manager = _NOT_MANAGER.search(answer.words)
            raise CellError(
                f"Grid Engine refused a change: {answer.words}\n{change}",
                fix if not_manager else "",
            )

    def _call(self, change: Change, text: str) -> Answer:
        with tempfile.TemporaryDirectory(prefix="sge-jobs-") as folder:
            file = Path(folder) / change.file_name
            file.write_text(text)
            arguments = [
                str(file) if argument == "FILE" else argument for argument in change.arguments
            ]
            return self._commands.run("qconf", *arguments)

    def _show(self, *arguments: str) -> str:
        answer = self._commands.run("qconf", *arguments)
        if answer.status:
            raise CellError(
                f"qconf {' '.join(arguments)}: {answer.words}", access_fix(answer.words)
            )
        return answer.out

    def _attributes(self, *arguments: str) -> Attributes:
        return parse_attributes(self._show(*arguments))

    def _names(self, *arguments: str) -> list[str]:
        answer = self._commands.run("qconf", *arguments)
        if answer.status and (fix := access_fix(answer.words)):
            raise CellError(f"qconf {' '.join(arguments)}: {answer.words}", fix)
        return answer.out.split() if answer.status == 0 else []  # status 1: none exists
