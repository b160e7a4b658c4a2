"""Choose the GPUs of a job: its request, the GPUs of this host, and the locks."""

from __future__ import annotations

import os
import time

from sge_jobs.exit_codes import JOB_ERROR, RESCHEDULE
from sge_jobs.node.claim import request
from sge_jobs.node.claim.lock_files import LockError, default_directory
from sge_jobs.node.claim.lock_state import LockState
from sge_jobs.node.claim.locks import Locks, wait_and_claim
from sge_jobs.node.claim.processes import read_process, shepherd_of
from sge_jobs.node.claim.record import Record
from sge_jobs.node.gpus import inventory
from sge_jobs.node.queries import QueryFailed, retry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Refused(Exception):
    """The job cannot run on this host; ``code`` is the exit code for Grid Engine."""

    def __init__(self, what: str, code: int) -> None:
        super().__init__(what)
        self.what = what
        self.code = code


class NodeSettings:
    """Paths that the starter reads on this host, and its timeouts in seconds.

    Attributes:
        gpu_wait_s: Timeout for GPUs that an earlier job has not released yet.
        qstat_wait_s: Timeout for the answer of the master.
    """

    cache = inventory.CACHE
    declared = inventory.DECLARED
    locks = ""
    gpu_wait_s = 10.0
    qstat_wait_s = 60.0


def assign(
    environment: Mapping[str, str], config: Mapping[str, str], settings: NodeSettings
) -> list[str]:
    """Return the GPUs of this job, claimed until its last process ends; empty without a request.

    Raises:
        Refused: The GPUs cannot be claimed.
    """
    job = environment.get("JOB_ID", "")
    wanted = _wanted(job, environment, settings) if job.isdigit() else 0
    if not wanted:
        return []
    devices = _granted(wanted, config, environment)
    wanted = len(devices) or wanted
    known = _inventory(settings)
    uuids = [_uuid_of(device, known) for device in devices] or list(known.uuids)
    slave = config.get("pe_task_id", "NONE") not in ("", "NONE")
    parallel = config.get("pe", "none").lower() not in ("", "none")
    if parallel and not devices:
        wanted = _for_host(wanted, known, config, environment, slave=slave)
    try:
        locks = Locks(settings.locks or default_directory(), inventory.boot_id())
        return _claim(
            locks, wanted, uuids, known, _me(environment, config), parallel, slave, settings
        )
    except LockError as error:
        raise Refused(f"cannot lock a GPU: {error}", JOB_ERROR) from error


def _wanted(job: str, environment: Mapping[str, str], settings: NodeSettings) -> int:
    def ask() -> int:
        return request.requested_gpus(request.query_job(job, environment))

    try:
        return retry(ask, settings.qstat_wait_s)
    except QueryFailed as error:
        what = f"cannot find out how many GPUs job {job} requested: {error}"
        raise Refused(f"{what}\nThe job goes back to the queue.", RESCHEDULE) from error


def _inventory(settings: NodeSettings) -> inventory.Inventory:
    known = inventory.read_cache(settings.cache)
    if known is None or not known.gpus:
        # Slow and rarely needed: the sensor usually has written the cache.
        from sge_jobs.node.gpus import cell_counts, detect

        found = detect.detect(settings.declared)
        per_slot = known.per_slot if known is not None else None
        known = inventory.Inventory(
            source=found.source,
            gpus=found.gpus,
            per_slot=cell_counts.consumable_kind() == "YES" if per_slot is None else per_slot,
        )
    if not known.gpus:
        what = "no GPU found on this host: check with nvidia-smi and sge-jobs check"
        raise Refused(what, RESCHEDULE)
    return known


def _uuid_of(device: str, known: inventory.Inventory) -> str:
    for gpu in known.gpus:
        if device in (gpu.uuid, str(gpu.index)):
            return gpu.uuid
    raise Refused(f"Grid Engine granted GPU {device}, which does not exist on this host", JOB_ERROR)


def _for_host(
    wanted: int,
    known: inventory.Inventory,
    config: Mapping[str, str],
    environment: Mapping[str, str],
    *,
    slave: bool,
) -> int:
    """Return how many GPUs a parallel job gets on this host; -1 for those of its first task."""
    if known.per_slot:
        return wanted * _slots(config, environment)
    return -1 if slave else wanted


def _granted(wanted: int, config: Mapping[str, str], environment: Mapping[str, str]) -> list[str]:
    """Return the devices that Grid Engine 9 chose; none if there are more than requested.

    Grid Engine 8 chooses none and does not change the variable, which the user may have set.
    """
    devices = request.granted_devices(environment)
    return devices if devices and len(devices) <= wanted * _slots(config, environment) else []


def _slots(config: Mapping[str, str], environment: Mapping[str, str]) -> int:
    return int(config.get("host_slots", "") or environment.get("NSLOTS", "1"))


def _me(environment: Mapping[str, str], config: Mapping[str, str]) -> Record:
    shepherd = shepherd_of(read_process(os.getppid()))
    task = environment.get("SGE_TASK_ID", "")
    group = config.get("add_grp_id", "0")
    return Record(
        job=environment.get("JOB_ID", "0"),
        task=task if task.isdigit() else "",
        user=config.get("job_owner", "") or environment.get("USER", "") or str(os.getuid()),
        boot=inventory.boot_id(),
        since=int(time.time()),
        group=int(group) if group.isdigit() and int(group) in os.getgroups() else 0,
        pid=os.getpid(),
        shepherd=shepherd.pid if shepherd is not None else 0,
        shepherd_started=shepherd.started if shepherd is not None else 0,
    )


def _claim(
    locks: Locks,
    wanted: int,
    uuids: list[str],
    known: inventory.Inventory,
    mine: Record,
    parallel: bool,
    slave: bool,
    settings: NodeSettings,
) -> list[str]:
    def attempt() -> tuple[list[tuple[str, int]], list[LockState]]:
        mutex = locks.mutex(time.monotonic() + settings.gpu_wait_s)
        if mutex < 0:
            what = f"timeout of {settings.gpu_wait_s:g} s: another process holds the lock 'claims'"
            raise Refused(what, RESCHEDULE)
        try:
            joined = locks.join(uuids, mine) if slave else []
            if joined or wanted < 0:
                return joined, []
            usable = [uuid for uuid in uuids if not known.blockers(uuid)]
            return locks.claim(wanted, usable, mine, shared=parallel)
        finally:
            os.close(mutex)

    if slave and wanted < 0:
        return [uuid for uuid, _ in attempt()[0]]
    taken, states = wait_and_claim(attempt, settings.gpu_wait_s)
    if not taken:
        from sge_jobs.node.claim.shortage import shortage  # rarely needed

        raise Refused(shortage(mine, wanted, states, known), RESCHEDULE)
    return [uuid for uuid, _ in taken]
