"""One NVIDIA MPS daemon for each GPU that jobs share, as the user of these jobs.

Only root starts and ends daemons: a process that a job starts belongs to the job, and Grid Engine
ends it with the job, also if other jobs still use it. The directory of a daemon belongs to its
user, mode 0700, so that no other user can connect.

CUDA reports no error without a daemon: programs run, but take turns. Therefore,
a missing daemon is reported. See https://docs.nvidia.com/deploy/mps/ for the variables.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from sge_jobs.node.claim.answer import AS_ROOT
from sge_jobs.node.claim.run_directory import LockError, open_private
from sge_jobs.node.gpus.inventory import MPS_DIRECTORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

CONTROL = "nvidia-cuda-mps-control"
PIPES = "CUDA_MPS_PIPE_DIRECTORY"
LOGS = "CUDA_MPS_LOG_DIRECTORY"
PERCENTAGE = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
MEMORY = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"

_COMM = CONTROL[:15].encode()  # the kernel shortens names: daemon and server have the same
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/nvidia/bin"
_START_S = 5.0
_END_S = 0.5


class MpsError(Exception):
    """A daemon cannot be started; the text says why."""


def account(name: str) -> pwd.struct_passwd:
    """Return the account ``name``. Raises MpsError."""
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise MpsError(f"this host has no user {name}") from None


def client_variables(pipes: str, thousandths: int, memory_mib: int = 0) -> dict[str, str]:
    """Return the variables with which a job uses its share of a GPU.

    Args:
        pipes: Directory of the daemon.
        thousandths: The share: the part of the multiprocessors that kernels can use, and of the
            memory.
        memory_mib: Memory of the whole GPU; 0 if unknown, then memory is not limited.
    """
    variables = {PIPES: pipes, PERCENTAGE: str(max(1, thousandths // 10))}
    if memory_mib:
        variables[MEMORY] = f"0={memory_mib * thousandths // 1000}M"
    return variables


class Mps:
    """The daemons of this host; only root can use it.

    Args:
        directory: Parent of the daemons' directories; only root can write it.
        program: Path of ``nvidia-cuda-mps-control``; empty to search for it.
    """

    def __init__(
        self, directory: str = MPS_DIRECTORY, program: str = "", proc: str = "/proc"
    ) -> None:
        self._directory = directory
        self._program = program
        self._proc = proc

    @property
    def program(self) -> str:
        """Path of ``nvidia-cuda-mps-control``; empty if this host has none."""
        return self._program or shutil.which(CONTROL, path=_PATH) or ""

    def pipes(self, uuid: str, user: int) -> str:
        """Return the directory of the daemon for a GPU and a user ID."""
        return f"{self._directory}/{uuid}.{user}"

    def running(self) -> set[tuple[str, int]]:
        """Return GPU and user of each daemon that has a directory, and runs."""
        with AS_ROOT:  # reads the variables of processes of users
            known = self.known()
            alive = {self._of(pid, daemons_only=True) for pid in self._pids()} if known else set()
        return {(uuid, user) for uuid, user in known if (user, self.pipes(uuid, user)) in alive}

    def known(self) -> set[tuple[str, int]]:
        """Return GPU and user of each directory of a daemon, whether it runs or not."""
        try:
            names = os.listdir(self._directory)
        except OSError:
            return set()
        parts = [name.rpartition(".") for name in names]
        return {(uuid, int(user)) for uuid, _, user in parts if uuid and user.isdigit()}

    def start(self, uuid: str, user: int, group: int) -> str:
        """Start the daemon unless it runs, and return its directory.

        Raises:
            MpsError: It does not start.
        """
        pipes = self.pipes(uuid, user)
        if (uuid, user) in self.running():
            return pipes
        if not self.program:
            raise MpsError(f"{CONTROL} is not installed")
        try:
            self._make_directory(pipes, user, group)
            code, said = self._daemonize(uuid, pipes, user, group)
        except (LockError, OSError, subprocess.SubprocessError) as error:
            raise MpsError(str(error)) from error
        # Another process of root can start the same daemon at this moment: then ours fails.
        if not self._is_up(uuid, user, _END_S if code else _START_S):
            raise MpsError(said.strip()[:200] or f"exit code {code}")
        return pipes

    def _daemonize(self, uuid: str, pipes: str, user: int, group: int) -> tuple[int, str]:
        """Run the program until its daemon is in the background; return its code and output."""
        variables = {"PATH": _PATH, "CUDA_VISIBLE_DEVICES": uuid, PIPES: pipes, LOGS: pipes}
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            # Not a pipe: the daemon can keep it open.
            with AS_ROOT:
                starting = subprocess.Popen(
                    [self.program, "-d"], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                    user=user, group=group, extra_groups=[], cwd="/", env=variables,
                    start_new_session=True,
                )  # fmt: skip
            with starting:
                try:
                    code = starting.wait(_START_S)
                except subprocess.TimeoutExpired:
                    with AS_ROOT:
                        starting.kill()
                    raise
            output.seek(0)
            return code, output.read(1000)

    def _make_directory(self, pipes: str, user: int, group: int) -> None:
        with AS_ROOT:
            descriptor = open_private(self._directory)
            os.fchmod(descriptor, 0o711)
            os.close(descriptor)
            with contextlib.suppress(FileExistsError):
                os.mkdir(pipes, mode=0o700)
            os.chown(pipes, user, group, follow_symlinks=False)

    def _is_up(self, uuid: str, user: int, limit_s: float) -> bool:
        until = time.monotonic() + limit_s
        while (uuid, user) not in self.running():
            if time.monotonic() >= until:
                return False
            time.sleep(0.02)
        return True

    def end(self, uuid: str, user: int) -> None:
        """End the daemon with its servers, and remove its directory."""
        pipes = self.pipes(uuid, user)
        for number in (signal.SIGTERM, signal.SIGKILL):
            until = time.monotonic() + _END_S
            while self._signal(number, user, pipes) and time.monotonic() < until:
                time.sleep(0.02)
        shutil.rmtree(pipes, ignore_errors=True)

    def _signal(self, number: int, user: int, pipes: str) -> int:
        """Send a signal to each process of a daemon, and return how many there are."""
        count = 0
        for pid in self._pids():
            with contextlib.suppress(ProcessLookupError):
                descriptor = os.pidfd_open(pid)  # from here on, the pid is not reused unnoticed
                try:
                    if self._of(pid) == (user, pipes):
                        signal.pidfd_send_signal(descriptor, number)
                        count += 1
                finally:
                    os.close(descriptor)
        return count

    def _pids(self) -> Iterator[int]:
        """Yield the pid of each process with the name of MPS, whoever runs it."""
        for entry in os.listdir(self._proc):
            with contextlib.suppress(OSError):
                if entry.isdigit() and _read(f"{self._proc}/{entry}/comm").strip() == _COMM:
                    yield int(entry)

    def _of(self, pid: int, *, daemons_only: bool = False) -> tuple[int, str] | None:
        """Return user ID and directory of an MPS process; None for another process."""
        path = f"{self._proc}/{pid}"
        try:
            words = _read(f"{path}/cmdline").split(b"\0")
            if daemons_only and not any(word.endswith(CONTROL.encode()) for word in words[:2]):
                return None
            lines = _read(f"{path}/environ").split(b"\0")
            user = os.stat(path).st_uid
        except OSError:
            return None
        variables = dict(line.partition(b"=")[::2] for line in lines)
        return user, variables.get(PIPES.encode(), b"").decode("utf-8", "replace")


class MpsStart:
    """The start of a daemon, in a thread: its user can stop it, and other jobs must not wait.

    Attributes:
        pipes: Its directory, when it runs.
        problem: Why it did not start; empty if it did.
    """

    def __init__(self, directory: str, uuid: str, user: str) -> None:
        self.pipes = self.problem = ""
        self._thread = threading.Thread(target=self._start, args=(directory, uuid, user))
        self._thread.daemon = True
        self._thread.start()

    def has_ended(self) -> bool:
        """Whether the daemon runs, or has failed to start."""
        return not self._thread.is_alive()

    def _start(self, directory: str, uuid: str, user: str) -> None:
        try:
            found = account(user)
            self.pipes = Mps(directory).start(uuid, found.pw_uid, found.pw_gid)
        except Exception as error:  # noqa: BLE001 (the attendant must not lose an answer)
            self.problem = str(error) or type(error).__name__


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(1 << 16)
