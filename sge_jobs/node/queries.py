"""How many GPUs a job asked for."""

from __future__ import annotations

import os
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DEBIAN_BINARIES = "/usr/lib/gridengine"
_MACHINES = {"x86_64": "-amd64", "aarch64": "-arm64"}
_TIMEOUT_S = 20.0
_RESOURCE_LISTS = ("hard resource list", "global hard resource list")


class QueryFailed(Exception):
    """Grid Engine did not answer, or not in a way that can be read.

    Attributes:
        said: All that a command wrote which failed.
    """

    def __init__(self, what: str, said: str = "") -> None:
        super().__init__(what)
        self.said = said


def granted_devices(environment: Mapping[str, str]) -> list[str]:
    """Return what ``SGE_HGR_gpu`` of Grid Engine 9 lists: indices or UUIDs; empty without it."""
    return environment.get("SGE_HGR_gpu", "").replace(",", " ").split()


def requested_gpus(qstat: str) -> int:
    """Return N of ``-l gpu=N`` in the text of ``qstat -j``, 0 without.

    Raises:
        QueryFailed: It is not about a job.
        ValueError: N is no number.
    """
    if "job_number:" not in qstat:
        raise QueryFailed(f"qstat -j said: {qstat.strip()[:200] or 'nothing'}")
    for line in qstat.split("\n"):
        key, _, value = line.partition(":")
        if key.strip().replace("_", " ") in _RESOURCE_LISTS:
            return _gpus_in(value)
    return 0


def _gpus_in(resources: str) -> int:
    for item in resources.replace(" ", ",").split(","):
        name, _, value = item.partition("=")
        if name == "gpu":
            number = value.partition(".")[0]
            if not number.isdigit():
                raise ValueError(f"the job asks for gpu={value}, which is no number")
            return int(number)
    return 0


def consumable_kind(qconf: str) -> str:
    """Return the column ``consumable`` of ``gpu`` in ``qconf -sc``: YES, JOB or NO; else empty."""
    for line in qconf.split("\n"):
        columns = line.split()
        if len(columns) >= 6 and columns[0] == "gpu":
            return columns[5].upper()
    return ""


def ask_qstat(job: str, environment: Mapping[str, str]) -> str:
    """Return the text of ``qstat -j JOB``. Raises QueryFailed."""
    return ask([find("qstat", environment), "-j", job], environment)


def find(name: str, environment: Mapping[str, str]) -> str:
    """Return the real program, where Debian hides it behind a slow wrapper, or its plain name.

    The execution daemon's own environment, which the sensor has, may name only SGE_ROOT.
    """
    path = f"{DEBIAN_BINARIES}/{name}"
    root, arch = environment.get("SGE_ROOT", ""), environment.get("SGE_ARCH", "")
    if arch and os.access(path, os.X_OK):
        return path
    for folder in [arch] if arch else _architectures(root):
        path = f"{root}/bin/{folder}/{name}"
        if root and os.access(path, os.X_OK):
            return path
    return name


def _architectures(root: str) -> list[str]:
    """Return the folders of programs for machines such as this one, the shortest name first."""
    ending = _MACHINES.get(os.uname().machine, "")
    try:
        found = os.listdir(f"{root}/bin") if root else []
    except OSError:
        return []
    fitting = [name for name in found if ending and name.endswith(ending)]
    return sorted(fitting, key=lambda name: (len(name), name))


def ask(argv: list[str], environment: Mapping[str, str], timeout_s: float = _TIMEOUT_S) -> str:
    """Return what ``argv`` writes to both of its outputs.

    Raises:
        QueryFailed: It cannot be started, fails, or is not done within ``timeout_s``.
    """
    reading, writing = os.pipe()
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, writing, 1),
        (os.POSIX_SPAWN_DUP2, writing, 2),
    ]
    try:
        pid = os.posix_spawnp(argv[0], argv, environment, file_actions=actions)
    except OSError as error:
        os.close(reading)
        raise QueryFailed(f"{argv[0]}: {error.strerror}") from error
    finally:
        os.close(writing)
    try:
        data = read_all(reading, time.monotonic() + timeout_s)
    finally:
        os.close(reading)
    if data is None:
        os.kill(pid, 9)
    _, status = os.waitpid(pid, 0)
    if data is None:
        raise QueryFailed(f"{' '.join(argv)}: no answer in {timeout_s:g} s")
    text = data.decode("utf-8", "replace")
    if status != 0:
        raise QueryFailed(f"{' '.join(argv)} failed: {text.strip()[:200]}", text)
    return text


def read_all(descriptor: int, until: float) -> bytes | None:
    """Return all that comes out of ``descriptor``; None when it is still open at ``until``."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    chunks: list[bytes] = []
    while True:
        left = until - time.monotonic()
        if left <= 0:
            return None
        if not poll.poll(left * 1000):
            continue
        chunk = os.read(descriptor, 65536)
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)


def retried(attempt: Callable[[], int], seconds: float, pause_s: float = 0.5) -> int:
    """Call ``attempt`` until it does not raise QueryFailed, with growing pauses, for ``seconds``.

    Raises:
        QueryFailed: The last failure.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            return attempt()
        except QueryFailed:
            if time.monotonic() + pause_s > until:
                raise
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 8.0)
