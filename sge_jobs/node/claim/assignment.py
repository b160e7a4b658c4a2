"""Assign GPUs to a job, as root: its request, the GPUs of this host, and who has them."""

from __future__ import annotations

import time

from sge_jobs.exit_codes import JOB_ERROR, RESCHEDULE
from sge_jobs.node.claim import lock_files
from sge_jobs.node.claim.answer import Answer
from sge_jobs.node.claim.lock_state import LockState
from sge_jobs.node.claim.locks import Held, Locks
from sge_jobs.node.claim.processes import Process, job_of_spool
from sge_jobs.node.claim.record import WHOLE, Record
from sge_jobs.node.claim.request import Request, only_value, query_request
from sge_jobs.node.claim.run_directory import LockError
from sge_jobs.node.gpus import inventory
from sge_jobs.node.gpus.links import Links
from sge_jobs.node.queries import QueryFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from sge_jobs.node.mps import MpsStart

_CONFIG_LIMIT = 1 << 22


class NodeSettings:
    """Paths on this host, and timeouts in seconds.

    Attributes:
        gpu_wait_s: Timeout for GPUs that an earlier job has not released yet.
        master_wait_s: Timeout for the answer of the master.
    """

    cache = inventory.CACHE
    locks = lock_files.DIRECTORY
    mps = inventory.MPS_DIRECTORY
    gpu_wait_s = 10.0
    master_wait_s = 60.0


class Assignment:
    """The assignment of GPUs to one job or parallel task.

    Everything that it believes comes from the kernel, the master, or Grid Engine's files in the
    spool directory.

    Args:
        shepherd: Grid Engine's process above the job.
        spool: Spool directory of the job, from the kernel.
        environment: Variables with which the execution daemon runs, not those of the job.
    """

    def __init__(
        self,
        shepherd: Process,
        spool: str,
        environment: Mapping[str, str],
        settings: NodeSettings | None = None,
    ) -> None:
        self._shepherd, self._spool = shepherd, spool
        self._environment = environment
        self._settings = settings or NodeSettings()
        self._started = time.monotonic()
        self._request: Request | None = None
        self._daemon: MpsStart | None = None
        self._request_at, self._pause_s = 0.0, 0.5

    def attempt(self) -> Answer | None:
        """Return the answer for the job; None if it has to wait and this must be called again."""
        try:
            return self._attempt()
        except (ValueError, OSError, LockError) as error:
            return Answer(code=JOB_ERROR, what=f"cannot assign GPUs: {error}")
        except Exception as error:  # noqa: BLE001 (the job must not wait for ever)
            what = f"cannot assign GPUs: {type(error).__name__}: {error}"
            return Answer(code=JOB_ERROR, what=what)

    def _attempt(self) -> Answer | None:
        job, task, parallel = job_of_spool(self._spool)
        if not job:
            raise ValueError(f"{self._spool} is not the spool directory of a job")
        request = self._asked(job)
        if isinstance(request, Answer) or request is None:
            return request
        share = request.share
        known = inventory.read_cache(self._settings.cache)
        if not request.gpus and not share:
            self._end_earlier(known)
            return Answer()
        if known is None and time.monotonic() < self._started + self._settings.master_wait_s:
            return None
        if known is None or not known.gpus:
            what = "no GPU found on this host: check with nvidia-smi and sge-jobs check"
            return Answer(code=RESCHEDULE, what=what)
        config = inventory.read_text(f"{self._spool}/config", _CONFIG_LIMIT)
        mine = Record(
            job=job,
            task=task if request.array else "",
            parallel=parallel,
            user=request.owner,
            boot=inventory.boot_id(),
            since=int(time.time()),
            share=share or WHOLE,
            group=_group(config),
            shepherd=self._shepherd.pid,
            shepherd_started=self._shepherd.started,
        )
        return self._claim(request, known, config, mine)

    def _asked(self, job: str) -> Request | Answer | None:
        if self._request is None and time.monotonic() >= self._request_at:
            try:
                self._request = query_request(job, self._environment)
            except QueryFailed as error:
                if time.monotonic() > self._started + self._settings.master_wait_s:
                    what = f"cannot find out how many GPUs job {job} requested: {error}"
                    return Answer(code=RESCHEDULE, what=f"{what}\nThe job goes back to the queue.")
                self._request_at = time.monotonic() + self._pause_s
                self._pause_s = min(2 * self._pause_s, 8.0)
            self._started = time.monotonic() if self._request is not None else self._started
        return self._request

    def _claim(
        self, request: Request, known: inventory.Inventory, config: str, mine: Record
    ) -> Answer | None:
        wanted = request.gpus or 1
        if request.parallel and known.per_slot and mine.share == WHOLE:
            wanted *= int(only_value(config, "host_slots") or "1")
        granted = self._granted(known, wanted) if mine.share == WHOLE else []
        wanted = len(granted) or wanted
        uuids = granted or list(known.uuids)
        usable = [uuid for uuid in uuids if not known.blockers(uuid)]
        opened = Locks(self._settings.locks, inventory.boot_id())
        with Held(opened, self._settings.gpu_wait_s) as locks:
            if mine.parallel:
                joined = locks.join(known.uuids, mine)
                self._restrict(locks, known)
                if joined or not known.per_slot:
                    return self._answer(joined, known, mine)
            taken, states = locks.claim(wanted, usable, mine, Links(known.links))
            self._restrict(locks, known)
        if taken:
            return self._answer(taken, known, mine)
        return self._shortage(mine, wanted, states, known)

    def _restrict(self, locks: Locks, known: inventory.Inventory) -> None:
        """Close the devices of the GPUs to other jobs, in a cell that restricts them."""
        if known.closed:
            from sge_jobs.node.devices import Devices  # few cells need it

            Devices().close(locks.survey(known.uuids))

    def _end_earlier(self, known: inventory.Inventory | None) -> None:
        """Take the devices from an ended job whose additional group this job can have."""
        if known is not None and known.closed:
            opened = Locks(self._settings.locks, inventory.boot_id())
            with Held(opened, self._settings.gpu_wait_s) as locks:
                self._restrict(locks, known)

    def _answer(self, taken: list[str], known: inventory.Inventory, mine: Record) -> Answer | None:
        """Return the answer for the GPUs ``taken``; None while the MPS daemon of a share starts."""
        if mine.share == WHOLE or not taken:
            return Answer(Links(known.links).order(taken))
        from sge_jobs.node.mps import MpsStart, client_variables  # slow to import

        if self._daemon is None:
            self._daemon = MpsStart(self._settings.mps, taken[0], mine.user)
        if not self._daemon.has_ended():
            return None
        if self._daemon.problem:
            what = f"cannot share {taken[0]}: {self._daemon.problem}"
            return Answer(code=RESCHEDULE, what=f"{what}\nThe job goes back to the queue.")
        memory_mib = next(gpu.memory_mib for gpu in known.gpus if gpu.uuid == taken[0])
        return Answer(taken, client_variables(self._daemon.pipes, mine.share, memory_mib))

    def _granted(self, known: inventory.Inventory, wanted: int) -> list[str]:
        """Return the GPUs that Grid Engine 9 chose; none if the cell only counts GPUs.

        Grid Engine sets the variable only if ``gpu`` is an RSMAP; otherwise it is the user's.
        """
        if not known.chosen:
            return []
        text = inventory.read_text(f"{self._spool}/environment", _CONFIG_LIMIT)
        devices = only_value(text, "SGE_HGR_gpu").replace(",", " ").split()
        if not 0 < len(devices) <= wanted:
            raise ValueError(f"Grid Engine granted {len(devices)} GPUs instead of {wanted}")
        return [_uuid_of(device, known) for device in devices]

    def _shortage(
        self, mine: Record, wanted: int, states: list[LockState], known: inventory.Inventory
    ) -> Answer | None:
        if time.monotonic() < self._started + self._settings.gpu_wait_s:
            return None
        from sge_jobs.node.claim.shortage import shortage  # rarely needed

        return Answer(code=RESCHEDULE, what=shortage(mine, wanted, states, known))


def _group(config: str) -> int:
    """Return the additional group of the job, by which its processes are found."""
    number = only_value(config, "add_grp_id")
    if not number.isdigit():
        raise ValueError("the job has no additional group: set gid_range with qconf -mconf")
    return int(number)


def _uuid_of(device: str, known: inventory.Inventory) -> str:
    for gpu in known.gpus:
        if device in (gpu.uuid, str(gpu.index)):
            return gpu.uuid
    raise ValueError(f"Grid Engine granted GPU {device}, which does not exist on this host")
