"""The ways by which a trial's files come back, each with real processes that tests can kill."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from spearmint.drivers.celery.broker import Broker
from spearmint.drivers.celery.job import described
from spearmint.drivers.celery.messages import arguments
from spearmint.drivers.celery.post import Post
from spearmint.drivers.celery.post.host import Host
from spearmint.drivers.celery.post.names import Names
from spearmint.drivers.celery.post.store import Store
from spearmint.drivers.celery.records import Records
from spearmint.drivers.queue import SubmitSpec
from spearmint.layout import TrialFolder, write_json
from spearmint.resources import Resources
from spearmint.trial.supervise import descendants
from spearmint.trial.transport.inputs import CODE, EXPERIMENT, code_archive, experiment_archives
from spearmint.trial.transport.mailroom import OUTBOX, SPEC, STATE, Address, Mailroom
from tests.spearmint.trial.transport.proxy import proxy_of
from tests.testbed.brokers import Redis
from tests.waiting import until

TOKEN = "0123456789ab"  # noqa: S105
_QUEUE, _KEY = "q", "of the broker"
# What a worker does with a message: its claim, and the trial under a life line.
_WORKER = """
import json, sys
from spearmint.drivers.celery.slot import Slot, SlotSettings
from spearmint.trial.leftovers import adopt_orphans
adopt_orphans()
given = json.load(sys.stdin)
slot = Slot(SlotSettings(url="", ca="", base="q", queues=("q",), **given["slot"]))
if slot.take(given["args"]):
    slot.run_task()
"""


class Way(ABC):
    """An experiment with one trial, on the submit side and on a host.

    Attributes:
        shares_files: Whether nothing is lost with a host.
    """

    shares_files = True

    def __init__(self, root: Path, code: str, temporary: Path) -> None:
        self.root, self.temporary, self.runs = root, temporary, 0
        self.folder = TrialFolder(root / "jobs" / "00000001")
        self.output, self.done = root / "out put.txt", root / "done"
        self.folder.path.mkdir(parents=True)
        (root / "wrapper.py").write_text(code)
        content = {"key": "k", "job_id": 1, "directory": str(root), "name": "wrapper"}
        write_json(self.folder.spec, {**content, "language": "PYTHON", "params": {}})
        self.processes: list[subprocess.Popen[bytes]] = []

    @abstractmethod
    def start(self) -> subprocess.Popen[bytes]:
        """Submit or rerun the job, and start its process."""

    def receive(self) -> None:
        """Store what has arrived, as the controller does at each poll."""
        return

    def bring_back(self) -> None:
        """Do what the queue does after the exit of a job."""
        self.receive()

    @abstractmethod
    def deliver_again(self, draw: random.Random) -> None:
        """Deliver everything a second time, in another order."""

    @abstractmethod
    def deliver_damaged(self, draw: random.Random) -> None:
        """Deliver pieces and damaged copies of everything."""

    def close(self) -> None:
        """Kill what is left."""
        for process in self.processes:
            kill(process)

    def popen(
        self, argv: Sequence[str], stdin: str = "", env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a process of the job."""
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **(env or {})},
        )
        self.processes.append(process)
        if process.stdin is not None:
            process.stdin.write(stdin.encode())
            process.stdin.close()
        return process


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all below it, as the loss of a host does."""
    while process.poll() is None and (found := [process.pid, *descendants(process.pid)]):
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)


class Shared(Way):
    """The host shares the directory: local, Grid Engine, Slurm, HTCondor."""

    def start(self) -> subprocess.Popen[bytes]:
        job = 'exec >>"$1" 2>&1; exec "$2" -P -m spearmint.trial.runner "$3"'
        words = [str(self.output), sys.executable, str(self.folder.path)]
        return self.popen(["sh", "-c", job, "sh", *words])

    def deliver_again(self, draw: random.Random) -> None:
        for process in [self.start() for _ in range(2)]:
            process.wait()

    def deliver_damaged(self, draw: random.Random) -> None:
        for name in (".result.json.123", ".runner.json.123"):
            (self.folder.path / name).write_text('{"value": 7')


class Celery(Way):
    """A message names the job; its folder says who runs it."""

    def __init__(self, root: Path, code: str, temporary: Path) -> None:
        super().__init__(root, code, temporary)
        self.records = Records(root)
        self.message: list[str] = []

    def start(self) -> subprocess.Popen[bytes]:
        for record in self.records.all():  # as the controller does with a lost job
            self.records.close(record.id, {"failure": "lost"})
        job = {
            "argv": [sys.executable, "-P", "-m", "spearmint.trial.runner", str(self.folder.path)],
            "directory": str(self.root),
            "output": str(self.output),
            "label": "trial",
            "environment": {},
            "gpus": 0,
            "walltime_s": None,
            "fence_s": 20.0,
        }
        id = self.records.create(TOKEN, job)
        self.message = arguments(_KEY, _QUEUE, self.root, id)
        return self._deliver(self.message)

    def _deliver(self, message: object) -> subprocess.Popen[bytes]:
        given = {"args": message, "slot": {"key": _KEY, "roots": [str(self.root)]}}
        return self.popen([sys.executable, "-P", "-c", _WORKER], json.dumps(given))

    def deliver_again(self, draw: random.Random) -> None:
        for process in [self._deliver(self.message) for _ in range(2)]:
            process.wait()

    def deliver_damaged(self, draw: random.Random) -> None:
        id = self.records.create(TOKEN, {"argv": ["/bin/false"], "output": str(self.output)})
        good = arguments(_KEY, _QUEUE, self.root, id)
        at = draw.randrange(len(good))
        bad = [good[:at], [*good[:at], f"{good[at]}x", *good[at + 1 :]]]
        for process in [self._deliver(message) for message in bad]:
            process.wait()
        assert next(record for record in self.records.all() if record.id == id).claim is None
        self.records.close(id, {})


class Transfer(Way):
    """HTCondor transfers the files; the job's proxy delivers while it runs."""

    has_proxy, shares_files = True, False

    def __init__(self, root: Path, code: str, temporary: Path) -> None:
        super().__init__(root, code, temporary)
        transfer = root / ".spearmint" / "transfer"
        transfer.mkdir(parents=True)
        archives = {
            CODE: code_archive(transfer),
            **experiment_archives(root, transfer, has_cache=False),
        }
        self.room = Mailroom(transfer)
        texts = {"folder": self.folder.path, "output": self.output, "done": self.done}
        address = Address(key="k", **{name: str(path) for name, path in texts.items()})
        self.box = self.room.open_box(TOKEN, address, archives)
        self.host, self.kept = temporary / "host", temporary / "kept"
        self.kept.mkdir()
        self.stack = contextlib.ExitStack()
        self.proxy = self.stack.enter_context(proxy_of(self.box))

    def close(self) -> None:
        super().close()
        self.stack.close()

    def start(self) -> subprocess.Popen[bytes]:
        self.runs += 1
        shutil.rmtree(self.host, ignore_errors=True)  # of a lost host nothing comes back
        (self.host / OUTBOX).mkdir(parents=True)
        for name in (SPEC, STATE, CODE, EXPERIMENT):
            shutil.copy2(self.box / name, self.host)
        (self.host / "ad").write_text(f"NumShadowStarts = {self.runs}\n")
        chirp = self.proxy.configuration(self.temporary / "chirp")
        variables = {"PYTHONPATH": str(self.host / CODE), "_CONDOR_JOB_AD": str(self.host / "ad")}
        variables["SPEARMINT_TRANSPORT_DONE"] = str(self.done)
        variables |= {"_CONDOR_CHIRP_CONFIG": str(chirp)} if self.has_proxy else {}
        job = 'cd "$1"; exec >>output.txt 2>&1; exec "$2" -P -m spearmint.trial.transport.agent'
        return self.popen(["sh", "-c", job, "sh", str(self.host), sys.executable], env=variables)

    def receive(self) -> None:
        for path in [*self.box.glob("*.parcel"), *(self.box / OUTBOX).glob("*.parcel")]:
            with contextlib.suppress(FileNotFoundError):
                shutil.copy2(path, self.kept)
        self.room.receive({TOKEN})

    def bring_back(self) -> None:
        shutil.copytree(self.host / OUTBOX, self.box / OUTBOX, dirs_exist_ok=True)
        self.receive()

    def deliver_again(self, draw: random.Random) -> None:
        parcels = sorted(self.kept.iterdir())
        for path in draw.sample(parcels * 2, 2 * len(parcels)):
            shutil.copy2(path, self.box)
            self.room.receive({TOKEN})

    def deliver_damaged(self, draw: random.Random) -> None:
        for path in sorted(self.kept.iterdir()):
            whole = path.read_bytes()
            at = draw.randrange(len(whole))
            damaged = bytes([*whole[:at], whole[at] ^ 1, *whole[at + 1 :]])
            for number, piece in enumerate((whole[:at], damaged)):
                (self.box / f"{path.name[:-7]}x{number}.parcel").write_bytes(piece)
                self.room.receive({TOKEN})


class TransferAtExit(Transfer):
    """The same, but the job has no proxy: all comes back when it exits."""

    has_proxy = False


class FilesByRedis(Celery):
    """A message names the job; its files go through Redis, and what comes back."""

    shares_files = False

    def __init__(self, root: Path, code: str, temporary: Path) -> None:
        super().__init__(root, code, temporary)
        self.redis, self.host = Redis(), temporary / "host"
        self.redis.start()
        self.host.mkdir()
        self.store = Store(self.redis.url)
        self.post = Post(Broker(self.redis.url, _KEY), root, "yes")
        self.post.start()
        self.hash = Names(self.post.search).said_by("host")
        self.seen: set[tuple[str, bytes]] = set()
        self.largest = 0

    def close(self) -> None:
        super().close()
        self.post.stop()
        self.redis.close()

    def start(self) -> subprocess.Popen[bytes]:
        for record in self.records.all():
            self.records.close(record.id, {"failure": "lost"})
        spec = SubmitSpec(
            token=TOKEN,
            label="trial",
            argv=("the agent of the host",),
            directory=self.root,
            output=self.output,
            environment={"SPEARMINT_DONE_FILE": str(self.done)},
            resources=Resources(gpus=0),
            folder=self.folder.path,
        )
        id = self.records.create(TOKEN, described(spec, fence_s=20.0, is_sent=True))
        self.message = arguments(_KEY, _QUEUE, None, id, self.post.search)
        return self._deliver(self.message)

    def _deliver(self, message: object) -> subprocess.Popen[bytes]:
        slot = {"key": _KEY, "roots": [str(self.host)], "store": self.redis.url}
        given = {"args": message, "slot": slot}
        return self.popen([sys.executable, "-P", "-c", _WORKER], json.dumps(given))

    def receive(self) -> None:
        self.seen |= set(self.store.fields(self.hash).items())
        self.largest = max(self.largest, self.store.bytes_used())
        for record in self.records.all():
            if record.end is not None:
                self.records.close(record.id, record.end)
        self.post.receive({TOKEN})

    def bring_back(self) -> None:
        """Let another worker of the host send what the first kept."""
        host = Host(self.store, _KEY, self.host, {"host": "", "pid": 0, "gpu": ""})
        until(lambda: (host.adopt(), self.receive()) and not self.records.all(), 60)
        self.receive()

    def deliver_again(self, draw: random.Random) -> None:
        super().deliver_again(draw)
        again = sorted(self.seen)
        self._say(draw.sample(again * 2, 2 * len(again)))

    def _say(self, messages: Sequence[tuple[str, bytes]]) -> None:
        for start, sealed in messages:
            self.store.write(self.hash, {start: sealed.decode()})
            self.store.notify({Names(self.post.search).signal: start})
            time.sleep(0.01)
        self.receive()

    def deliver_damaged(self, draw: random.Random) -> None:
        super().deliver_damaged(draw)
        for start, sealed in sorted(self.seen):
            at = draw.randrange(len(sealed))
            damaged = bytes([*sealed[:at], sealed[at] ^ 1, *sealed[at + 1 :]])
            text = damaged.decode("ascii", "replace").encode("ascii", "replace")
            self._say([(start, sealed[:at]), (start, text), (start[:at], sealed)])


WAYS: dict[str, type[Way]] = {
    "shared directory": Shared,
    "Celery": Celery,
    "files by Redis": FilesByRedis,
    "file transfer": Transfer,
    "file transfer at exit": TransferAtExit,
}
