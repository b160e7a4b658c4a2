"""The starter of every job: claim the GPUs it asked for, then become the job.

A queue's ``starter_method``. Exit codes are Grid Engine's: 99 run the job again elsewhere or later,
100 put it into the error state.
"""

from __future__ import annotations

import os
import sys
import time
from _signal import SIG_DFL, SIGPIPE, SIGXFSZ, signal  # type: ignore[import-not-found]

from sge_jobs.node import queries as request
from sge_jobs.node.claim import command
from sge_jobs.node.claim.locks import LockError, Locks, State, default_directory, wait_and_claim
from sge_jobs.node.claim.processes import read_process, shepherd_of
from sge_jobs.node.claim.record import Record
from sge_jobs.node.gpus import inventory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

RESCHEDULE = 99
JOB_ERROR = 100


class Refused(Exception):
    """The job cannot run here; ``code`` tells Grid Engine what to do with it."""

    def __init__(self, what: str, code: int) -> None:
        super().__init__(what)
        self.what = what
        self.code = code


class Host:
    """Where this host keeps what the starter reads, and how long it waits.

    Attributes:
        gpu_wait_s: For a GPU that its last job has not let go yet.
        qstat_wait_s: For a master that does not answer.
    """

    cache = inventory.CACHE
    declared = inventory.DECLARED
    locks = ""
    gpu_wait_s = 10.0
    qstat_wait_s = 60.0


def main(args: Sequence[str], locale: str = "", host: Host | None = None) -> NoReturn:
    """Become the job whose command is ``args``.

    Args:
        locale: ``=VALUE`` of the job's LC_CTYPE, empty when it has none: Python may change it.
    """
    environment = clean_environment(os.environ, locale)
    if not args:
        _end("no command: this program is a queue's starter_method", 2)
    try:
        config = read_job_config(environment)
        devices = assign(environment, config, host or Host())
    except Refused as refusal:
        _end(refusal.what, refusal.code)
    except Exception as error:  # noqa: BLE001 (whatever it is, the job must not run without its GPU)
        _end(f"failed to assign GPUs: {type(error).__name__}: {error}", JOB_ERROR)
    environment["CUDA_VISIBLE_DEVICES"] = ",".join(devices)
    environment.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    become(command.job_command(args, environment, config, _login_shell(environment)), environment)


def clean_environment(environment: Mapping[str, str], locale: str) -> dict[str, str]:
    """Return the job's own variables, without what the launcher and Python added."""
    own = dict(environment)
    own.pop("LC_CTYPE", None)
    if locale:
        own["LC_CTYPE"] = locale[1:]
    if own.get("SHLVL") == "0":
        for name in ("SHLVL", "_", "OLDPWD"):
            own.pop(name, None)
    return own


def read_job_config(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the ``config`` file of the job that runs; empty where there is none."""
    try:
        path = environment["SGE_JOB_SPOOL_DIR"] + "/config"
        return command.parse_config(inventory.read_text(path, 1 << 22))
    except (KeyError, OSError):
        return {}


def assign(environment: Mapping[str, str], config: Mapping[str, str], host: Host) -> list[str]:
    """Return the GPUs of this job, claimed until its last process ends; none if it wants none.

    Raises:
        Refused: They cannot be had.
    """
    job = environment.get("JOB_ID", "")
    wanted = _wanted(job, environment, host) if job.isdigit() else 0
    if not wanted:
        return []
    devices = _granted(wanted, config, environment)
    wanted = len(devices) or wanted
    known = _inventory(host)
    uuids = [_uuid_of(device, known) for device in devices] or list(known.uuids)
    slave = config.get("pe_task_id", "NONE") not in ("", "NONE")
    parallel = config.get("pe", "none").lower() not in ("", "none")
    if parallel and not devices:
        wanted = _for_host(wanted, known, config, environment, slave=slave)
    try:
        locks = Locks(host.locks or default_directory(), inventory.boot_id())
        return _claim(locks, wanted, uuids, known, _me(environment, config), parallel, slave, host)
    except LockError as error:
        raise Refused(f"cannot lock a GPU: {error}", JOB_ERROR) from error


def _wanted(job: str, environment: Mapping[str, str], host: Host) -> int:
    def ask() -> int:
        return request.requested_gpus(request.ask_qstat(job, environment))

    try:
        return request.retried(ask, host.qstat_wait_s)
    except request.QueryFailed as error:
        what = f"cannot learn how many GPUs job {job} asked for: {error}"
        raise Refused(f"{what}\nIt is put back into the queue.", RESCHEDULE) from error


def _inventory(host: Host) -> inventory.Inventory:
    known = inventory.read_cache(host.cache)
    if known is None or not known.gpus:
        from sge_jobs.node.gpus import (
            detect as gpus,  # slow, and seldom needed: the sensor writes the cache
        )

        found = gpus.detect(host.declared)
        per_slot = known.per_slot if known is not None else None
        known = inventory.Inventory(
            source=found.source,
            gpus=found.gpus,
            per_slot=gpus.consumable_kind() == "YES" if per_slot is None else per_slot,
        )
    if not known.gpus:
        what = "no GPU is found on this host: see nvidia-smi, and sge-jobs check"
        raise Refused(what, RESCHEDULE)
    return known


def _uuid_of(device: str, known: inventory.Inventory) -> str:
    for gpu in known.gpus:
        if device in (gpu.uuid, str(gpu.index)):
            return gpu.uuid
    raise Refused(f"Grid Engine granted GPU {device}, which this host does not have", JOB_ERROR)


def _for_host(
    wanted: int,
    known: inventory.Inventory,
    config: Mapping[str, str],
    environment: Mapping[str, str],
    *,
    slave: bool,
) -> int:
    """Return how many GPUs a parallel job has on this host; -1 for those of its first task."""
    if known.per_slot:
        return wanted * _slots(config, environment)
    return -1 if slave else wanted


def _granted(wanted: int, config: Mapping[str, str], environment: Mapping[str, str]) -> list[str]:
    """Return the devices that Grid Engine 9 chose; none where it cannot have chosen so many.

    Grid Engine 8 chooses none and leaves the variable as the user set it.
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
    host: Host,
) -> list[str]:
    def attempt() -> tuple[list[tuple[str, int]], list[State]]:
        mutex = locks.mutex(time.monotonic() + host.gpu_wait_s)
        if mutex < 0:
            raise Refused("another process keeps the lock on GPU claims", RESCHEDULE)
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
    taken, states = wait_and_claim(attempt, host.gpu_wait_s)
    if not taken:
        raise Refused(shortage(mine, wanted, states, known), RESCHEDULE)
    return [uuid for uuid, _ in taken]


def shortage(mine: Record, wanted: int, states: list[State], known: inventory.Inventory) -> str:
    """Return the words for a job that cannot have its GPUs: who has them."""
    free = sum(state.free for state in states)
    lines = [f"job {mine.label} needs {wanted} GPU(s) on this host, {free} free:"]
    lines += [f"  {state.uuid}: {describe(state)}" for state in states]
    for uuid in known.uuids:
        if pids := known.blockers(uuid):
            lines.append(f"  {uuid}: used from outside Grid Engine by {', '.join(map(str, pids))}")
    lines.append("It is put back into the queue. Look with: sge-jobs gpus")
    return "\n".join(lines)


def describe(state: State) -> str:
    """Return in a few words who has the GPU of ``state``."""
    if state.problem:
        return state.problem
    if state.free:
        return "free"
    if state.record is None:
        return "locked by an unknown process"
    holder = f"job {state.record.label} of {state.record.user} since {_date(state.record.since)}"
    if not state.outlived:
        return holder
    left = ", ".join(f"{process.pid} ({process.name})" for process in state.processes[:5])
    return f"processes that outlived {holder}: {left or 'unknown'}; end them to free it"


def _date(seconds: int) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    except (OSError, OverflowError, ValueError):
        return "an unknown time"


def _login_shell(environment: Mapping[str, str]) -> str:
    if environment.get(command.SHELL) != "":
        return "/bin/sh"
    import pwd  # asks the network on some sites, and only qrsh needs it

    try:
        return pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
    except KeyError:
        return "/bin/sh"


def become(job: command.Command, environment: Mapping[str, str]) -> NoReturn:
    """Replace this process by the job. Ends with 100 where that fails, as Grid Engine would."""
    for number in (SIGPIPE, SIGXFSZ):  # Python ignores both
        signal(number, SIG_DFL)
    try:
        os.execvpe(job.program, job.argv, environment)  # noqa: S606 (becoming the job is the point)
    except OSError as error:
        if error.errno != 8:  # ENOEXEC: a script without its first line
            _end(f"cannot run {job.program}: {error.strerror}", JOB_ERROR)
    argv = ["/bin/sh", job.program, *job.argv[1:]]
    os.execve("/bin/sh", argv, environment)  # noqa: S606


def _end(what: str, code: int) -> NoReturn:
    sys.stderr.write(f"sge-jobs: {what}\n")
    sys.stderr.flush()
    os._exit(code)
