"""Run a command of Grid Engine or of the NVIDIA driver on a node, with a timeout.

Does not use :mod:`subprocess`, whose import takes longer than the command.
"""

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


class QueryFailed(Exception):
    """A command failed, timed out, or printed output that cannot be parsed.

    Attributes:
        output: Complete output of the failed command.
    """

    def __init__(self, what: str, output: str = "") -> None:
        super().__init__(what)
        self.output = output


def find_program(name: str, environment: Mapping[str, str]) -> str:
    """Return the path of a Grid Engine program, without Debian's slow wrapper, or its plain name.

    The sensor inherits the environment of the execution daemon, which may have only SGE_ROOT.
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
    """Return the program folders for this machine's architecture, the shortest name first."""
    ending = _MACHINES.get(os.uname().machine, "")
    try:
        found = os.listdir(f"{root}/bin") if root else []
    except OSError:
        return []
    matching = [name for name in found if ending and name.endswith(ending)]
    return sorted(matching, key=lambda name: (len(name), name))


def ask(argv: list[str], environment: Mapping[str, str], timeout_s: float = _TIMEOUT_S) -> str:
    """Run ``argv`` and return its standard output and error together.

    Raises:
        QueryFailed: The command cannot start, fails, or runs longer than ``timeout_s``.
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
        raise QueryFailed(f"{' '.join(argv)}: timeout after {timeout_s:g} s")
    text = data.decode("utf-8", "replace")
    if status != 0:
        raise QueryFailed(f"{' '.join(argv)} failed: {text.strip()[:200]}", text)
    return text


def read_all(descriptor: int, until: float) -> bytes | None:
    """Read ``descriptor`` to its end; None if it is still open at ``until`` (monotonic s)."""
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


def retry(attempt: Callable[[], int], seconds: float, pause_s: float = 0.5) -> int:
    """Call ``attempt`` until it succeeds, for at most ``seconds``, with exponential backoff.

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
