"""The driver for HTCondor."""

from __future__ import annotations

import os
import pwd
import re
import tempfile
from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from spearmint.drivers.base import DriverSettings
from spearmint.drivers.htcondor.commands import ads, ask, checked, words
from spearmint.drivers.htcondor.description import (
    ID_VARIABLE,
    RERUN,
    TOKEN,
    hidden_by,
    script_of,
    submit_description,
)
from spearmint.drivers.htcondor.ends import END, parse_end
from spearmint.drivers.htcondor.listing import JOB, SLOT, parse_hosts, parse_jobs
from spearmint.drivers.htcondor.obstacles import MACHINES, emptied, obstacle_of
from spearmint.drivers.htcondor.transfer import Transfer
from spearmint.drivers.queue import (
    Dialect,
    EndedRun,
    Obstacle,
    Queue,
    QueueHost,
    QueueJob,
    SubmitSpec,
)
from spearmint.drivers.queue_driver import QueueDriver
from spearmint.errors import DriverError, InputError, QueueFull
from spearmint.resources import Resources

_ID = re.compile(r"^(\d+\.\d+) - \d+\.\d+$", re.MULTILINE)
_FULL = re.compile(r"MAX_JOBS_(SUBMITTED|PER_OWNER|PER_SUBMISSION)|exceed", re.IGNORECASE)
_ENDED = re.compile(r"^\s*$|^Job \S+ (not found|already marked)", re.IGNORECASE)
_IDS = 200  # of one condor_rm


class HTCondor(Queue):
    """Implements the calls of a queue with condor_submit, condor_q, condor_rm and condor_history.

    The Python bindings are not used: those of PyPI cannot authenticate to an older schedd.
    """

    def __init__(self, settings: DriverSettings) -> None:
        """Call no command."""
        self._transfer = Transfer(settings)

    def submit(self, spec: SubmitSpec, *, inherit: Sequence[int]) -> str:
        """Run condor_submit; raises InputError if jobs do not see the directory of the search."""
        box = None
        if self.shares_files():
            self._check_paths(spec)
        else:
            submit_description(spec, Path("/"))  # before the files are packed
            box = self._transfer.open_box(spec)
        description = submit_description(spec, box)
        argv = ("-terse", *spec.resources.options, "-")
        answer = ask("condor_submit", *argv, stdin=os.fsencode(description), inherit=inherit)
        if found := _ID.search(answer.out):
            return found[1]
        error = QueueFull if _FULL.search(answer.err) else DriverError
        raise error(f"condor_submit refused the job: {words(answer) or 'no message'}")

    def _check_paths(self, spec: SubmitSpec) -> None:
        paths = [spec.directory, spec.output, Path(spec.argv[0])]
        if found := hidden_by(paths, self._mounts):
            path, directory = found
            raise InputError(
                f"jobs of HTCondor do not see {path}: each has its own {directory} "
                "(MOUNT_UNDER_SCRATCH)",
                "Move it to a directory that all hosts share, such as your home directory.",
            )

    @cached_property
    def _mounts(self) -> str:
        """The directories that each job has for itself, from the configuration of this host."""
        answer = ask("condor_config_val", "MOUNT_UNDER_SCRATCH")
        return "" if answer.status else answer.out

    def jobs(self) -> Sequence[QueueJob]:
        """Run condor_q; then store what jobs on hosts that share no files have sent."""
        mine = f'{TOKEN} =!= undefined && Owner == "{_owner()}"'
        found = parse_jobs(ads("condor_q", "-constraint", mine, attributes=JOB))
        self._transfer.receive({job.token for job in found})
        return found

    def fetch(self) -> None:
        """Store what jobs on hosts that share no files have sent."""
        self._transfer.receive(None)

    def shares_files(self) -> bool:
        """Return whether no file transfer is requested, and the pool's hosts share files."""
        return not self._transfer.is_used()

    def cancel(self, ids: Collection[str]) -> None:
        """Run condor_rm."""
        listed = list(ids)
        for first in range(0, len(listed), _IDS):
            answer = ask("condor_rm", *listed[first : first + _IDS])
            wrong = [line for line in answer.err.splitlines() if not _ENDED.search(line)]
            if answer.status and wrong:
                raise DriverError(f"condor_rm failed: {words(answer)}")

    def _seems_shared(self) -> bool:
        try:
            return self.shares_files()
        except DriverError:
            return True  # this host may have no pool

    def hosts(self, need: Resources) -> Sequence[QueueHost]:
        """Run condor_status."""
        return parse_hosts(ads("condor_status", "-constraint", MACHINES, attributes=SLOT))

    def accounting(self, id: str) -> Sequence[EndedRun]:
        """Run condor_history."""
        found = ads("condor_history", id, "-limit", "1", attributes=END)
        return [parse_end(ad) for ad in found]

    def obstacle(self, id: str) -> Obstacle | None:
        """Run condor_q -better-analyze on the machines as they are without any job."""
        machines = emptied(checked("condor_status", "-long", "-constraint", MACHINES))
        with tempfile.NamedTemporaryFile("w", prefix="slots-") as file:
            file.write(machines)
            file.flush()
            analysis = checked("condor_q", id, "-better-analyze", "-slotads", file.name)
        return obstacle_of(id, analysis)

    def preview(self, spec: SubmitSpec) -> str:
        """Return the submit description, and the script that its arguments encode."""
        options = "".join(f" {option}" for option in spec.resources.options)
        box = None if self._seems_shared() else self._transfer.directory / spec.token
        script = "".join(f"# {line}\n" for line in script_of(spec, box).splitlines())
        description = submit_description(spec, box)
        return f"condor_submit -terse{options} - <<'END'\n{description}END\n# runs:\n{script}"


def _owner() -> str:
    """Return the name under which HTCondor lists the jobs of this process."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        fix = "HTCondor identifies users by their name: log in as a user that has one."
        raise DriverError(f"user {os.getuid()} has no name on this host", fix) from None


class HTCondorDriver(QueueDriver):
    """Run trials as HTCondor jobs, each on its own GPUs."""

    name = "HTCONDOR"
    queue_type = HTCondor
    dialect: ClassVar[Dialect] = Dialect(
        queue="HTCondor",
        job_id_variable=ID_VARIABLE,
        rerun_exit_code=RERUN,
        limits_time=("allowed_job_duration", "allowed_execute_duration", "periodic_remove"),
        accounting="condor_history",
        release="condor_release {id}",
        resume="condor_continue {id}",
        cancel="condor_rm {id}",
        forget="condor_rm -forcex {id}",
    )
