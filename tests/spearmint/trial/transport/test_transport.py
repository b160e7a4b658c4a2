"""What a host sends arrives whole, in order, once: whatever is killed, lost, late or truncated."""

from __future__ import annotations

import itertools
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spearmint.layout import TrialFolder, read_json, write_json
from spearmint.trial.transport import mailroom, restore
from spearmint.trial.transport.chirp import Chirp
from spearmint.trial.transport.mailroom import OUTBOX, STATE, Address, Mailroom
from spearmint.trial.transport.packing import Interrupted
from spearmint.trial.transport.parcel import Header, open_parcel
from spearmint.trial.transport.sender import Packer, Sender
from tests.spearmint.trial.transport.proxy import proxy_of

KEY, TOKEN = "k1", "0123456789ab"


class Job:
    """A trial on both sides: its mailbox, and its folder on a host."""

    def __init__(self, root: Path) -> None:
        self.folder = TrialFolder(root / "jobs" / "a, 'quoted' trial")
        self.folder.path.mkdir(parents=True)
        self.output = root / "out put.txt"
        write_json(self.folder.spec, {"key": KEY})
        self.room = Mailroom(root / "transfer")
        address = Address(folder=str(self.folder.path), output=str(self.output), done="", key=KEY)
        self.box = self.room.open_box(TOKEN, address, {})
        self.packed = root / "packed"
        self.packed.mkdir()
        self.runs = itertools.count(1)

    def host(self, key: str = KEY, start: str = "") -> Host:
        return Host(self, next(self.runs), key, start)

    def receive(self) -> None:
        self.room.receive({TOKEN})

    def content(self) -> dict[str, str]:
        """Return all files of the trial, and its output."""
        paths = [path for path in self.folder.path.rglob("*") if path.is_file()]
        found = {str(path.relative_to(self.folder.path)): path.read_text() for path in paths}
        return found | {"output": self.output.read_text() if self.output.exists() else ""}


class Host:
    """One run of a trial on a host."""

    def __init__(self, job: Job, run: int, key: str, start: str) -> None:
        self._job = job
        root = job.packed.parent / f"host{run}"
        self.folder = TrialFolder(root / "trial")
        self.folder.files.mkdir(parents=True)
        with open_parcel(job.box / STATE) as state:
            assert state is not None
            restore.restore(state, self.folder)
        self.output = root / "output.txt"
        self.output.touch()
        header = Header(key=key, run=run, start=start or f"start{run}")
        self.packer = Packer(self.folder, self.output, header)

    def prints(self, text: str) -> None:
        with self.output.open("a") as file:
            file.write(text)

    def pack(self, *, with_files: bool = True) -> Path:
        path = self.packer.pack(self._job.packed, with_files=with_files)
        assert path is not None
        return path

    def post(self, *, with_files: bool = True) -> Path:
        """Deliver what has changed; return a copy of the parcel."""
        path = self.pack(with_files=with_files)
        shutil.copy2(path, self._job.box)
        self.packer.delivered()
        return path


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_output_reports_and_files_arrive_while_the_trial_runs(job: Job) -> None:
    host = job.host()
    host.prints("one\n")
    (host.folder.files / "sub dir").mkdir()
    (host.folder.files / "sub dir" / "checkpoint").write_text("1")
    host.post()
    job.receive()
    assert job.content()["output"] == "one\n"
    host.prints("two\n")
    host.folder.reports.write_text("1,0.5\n")
    host.post(with_files=False)
    job.receive()
    assert job.content() == {
        "trial.json": f'{{"key": "{KEY}"}}',
        "output": "one\ntwo\n",
        "reports.csv": "1,0.5\n",
        "files/sub dir/checkpoint": "1",
    }
    assert host.packer.pack(job.packed, with_files=True) is None


def test_deleted_files_links_and_modes(job: Job) -> None:
    host = job.host()
    for name in ("old", "tool"):
        (host.folder.files / name).write_text(name)
    host.post()
    job.receive()
    (host.folder.files / "old").unlink()
    (host.folder.files / "tool").chmod(0o755)
    (host.folder.files / "latest").symlink_to("tool")
    (host.folder.files / "empty").mkdir()
    os.mkfifo(host.folder.files / "fifo")
    host.post()
    job.receive()
    files = job.folder.files
    assert sorted(path.name for path in files.iterdir()) == ["empty", "latest", "tool"]
    assert os.access(files / "tool", os.X_OK)
    assert str((files / "latest").readlink()) == "tool"


def test_twice_and_out_of_order(job: Job) -> None:
    host = job.host()
    parcels = []
    for step in range(4):
        host.prints(f"{step}\n")
        (host.folder.files / "step").write_text(str(step))
        parcels.append(host.post())
        (job.box / parcels[-1].name).unlink()
    for order in ([1, 0], [3, 3, 2], [0, 1, 2, 3], [3]):
        for number in order:
            shutil.copy2(parcels[number], job.box)
            job.receive()
    assert job.content()["output"] == "0\n1\n2\n3\n"
    assert job.content()["files/step"] == "3"
    assert not list(job.box.glob("*.parcel"))


def test_a_rerun_appends_to_the_output_and_continues_from_the_files(job: Job) -> None:
    first = job.host()
    first.prints("first\n")
    (first.folder.files / "step").write_text("1")
    first.post()
    job.receive()
    second = job.host()
    assert (second.folder.files / "step").read_text() == "1"
    second.prints("second\n")
    first.prints("late\n")
    late = first.pack()
    second.post()
    job.receive()
    shutil.copy2(late, job.box)
    job.receive()
    assert job.content()["output"] == "first\nsecond\n"
    assert job.content()["files/step"] == "1"


def test_runs_with_equal_numbers(job: Job) -> None:
    """Hosts that cannot read the job's ad number each run the same."""
    first = job.host()
    first.prints("first\n")
    (first.folder.files / "step").write_text("1")
    first.post()
    first.prints("more\n")
    first.post()
    job.receive()
    job.runs = itertools.count(1)
    shutil.rmtree(first.folder.path.parent)
    second = job.host(start="another")
    second.prints("second\n")
    (second.folder.files / "step").write_text("2")
    second.folder.result.write_text(f'{{"key": "{KEY}"}}')
    path = second.post()
    job.receive()
    for _ in range(2):
        assert job.content()["output"] == "first\nmore\nsecond\n"
        assert job.content()["files/step"] == "2"
        assert job.folder.result.exists()
        shutil.copy2(path, job.box)
        job.receive()


def test_a_late_result_is_kept(job: Job) -> None:
    first, second = job.host(), job.host()
    first.prints("first\n")
    first.post()
    second.prints("second\n")
    (second.folder.files / "step").write_text("2")
    second.post()
    job.receive()
    first.folder.result.write_text(f'{{"key": "{KEY}"}}')
    first.post()
    job.receive()
    assert job.folder.result.exists()
    assert job.content()["files/step"] == "2"


def test_a_truncated_parcel_waits_for_the_rest(job: Job) -> None:
    host = job.host()
    host.prints("x" * 5000)
    (host.folder.files / "step").write_bytes(os.urandom(5000))
    path = host.pack()
    whole = path.read_bytes()
    (job.box / OUTBOX).mkdir()
    for size in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        (job.box / OUTBOX / path.name).write_bytes(whole[:size])
        job.receive()
        assert job.content() == {"trial.json": f'{{"key": "{KEY}"}}', "output": ""}
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 1
    (job.box / OUTBOX / path.name).write_bytes(damaged)
    job.receive()
    assert not job.output.exists()
    (job.box / OUTBOX / path.name).write_bytes(whole)
    job.receive()
    assert job.output.read_text() == "x" * 5000


def test_a_parcel_of_another_attempt_changes_nothing(job: Job) -> None:
    other = job.host(key="k0")
    other.folder.result.write_text('{"key": "k0"}')
    path = other.post()
    job.receive()
    assert not job.folder.result.exists()
    assert not (job.box / path.name).exists()


class Killed(BaseException):
    """A kill -9: no handler runs."""


def _faults(monkeypatch: pytest.MonkeyPatch, at: int, after: bool) -> Callable[[], int]:
    """Let the ``at``-th change of a directory be the last action, done or not."""
    count = itertools.count()
    last = [0]

    def wrap(function: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **named: object) -> object:
            last[0] = next(count)
            if last[0] == at and not after:
                raise Killed
            result = function(*arguments, **named)
            if last[0] == at:
                raise Killed
            return result

        return call

    for name in ("replace", "rename", "unlink", "mkdir"):
        monkeypatch.setattr(Path, name, wrap(getattr(Path, name)))
    for module in (mailroom, restore):
        removes = type("shutil", (), {"rmtree": staticmethod(wrap(shutil.rmtree))})
        monkeypatch.setattr(module, "shutil", removes)
    return lambda: last[0]


def _deliveries(job: Job) -> Iterator[None]:
    """Deliver everything that a trial can; each step is received on its own."""
    host = job.host()
    host.prints("1\n")
    (host.folder.files / "step").write_text("1")
    host.post()
    yield
    host.prints("2\n")
    (host.folder.files / "step").write_text("2")
    host.folder.reports.write_text("1,1\n")
    host.post()
    host.prints("3\n")
    host.folder.result.write_text(f'{{"key": "{KEY}", "value": 1.0}}')
    path = host.pack(with_files=False)
    (job.box / OUTBOX).mkdir()
    shutil.copy2(path, job.box / OUTBOX)
    yield


EXPECTED = {
    "trial.json": f'{{"key": "{KEY}"}}',
    "output": "1\n2\n3\n",
    "files/step": "2",
    "reports.csv": "1,1\n",
    "result.json": f'{{"key": "{KEY}", "value": 1.0}}',
}


@pytest.mark.parametrize("after", [False, True])
def test_the_controller_is_killed_at_any_instant(tmp_path: Path, after: bool) -> None:
    for at in itertools.count():
        root = tmp_path / str(at)
        root.mkdir()
        job = Job(root)
        was_killed = False
        for _ in _deliveries(job):
            with pytest.MonkeyPatch.context() as patch:
                _faults(patch, at, after)
                try:
                    job.receive()
                except Killed:
                    was_killed = True
            if job.folder.result.exists():  # nothing that belongs to it is missing
                whole = {name: text for name, text in job.content().items() if name in EXPECTED}
                assert whole == EXPECTED, at
            Mailroom(root / "transfer").receive({TOKEN})
        assert job.content() == EXPECTED, at
        if not was_killed:
            assert at > 10
            return


def test_mailboxes_are_deleted_after_the_result(job: Job) -> None:
    job.receive()
    job.room.receive(set())
    assert job.box.exists(), "the job may be listed in a moment"
    host = job.host()
    host.folder.result.write_text(f'{{"key": "{KEY}"}}')
    host.post()
    job.room.receive(set())
    assert job.folder.result.exists()
    assert not job.box.exists()


def test_a_new_submission_gets_a_new_mailbox(job: Job) -> None:
    (job.folder.files).mkdir()
    (job.folder.files / "step").write_text("7")
    seen = read_json(job.box / "address.json")
    assert seen is not None
    again = job.room.open_box(TOKEN, Address(**seen), {})
    assert again != job.box
    assert not job.box.exists()
    job.box = again
    assert (job.host().folder.files / "step").read_text() == "7"


def test_files_that_change_meanwhile_are_not_sent(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spearmint.trial.transport import sender

    host = job.host()
    step = host.folder.files / "step"
    step.write_text("1")
    write = sender.write_parcel

    def slow(*arguments: object, **named: object) -> None:
        write(*arguments, **named)  # type: ignore[arg-type]
        step.write_text("2")

    monkeypatch.setattr(sender, "write_parcel", slow)
    assert host.packer.pack(job.packed, with_files=True) is None
    assert not list(job.packed.iterdir())
    host.prints("a line")
    step.write_text("1")
    host.post()
    job.receive()
    assert job.content()["output"] == "a line"
    assert "files/step" not in job.content()


def test_files_that_only_grow_meanwhile_are_sent(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    from spearmint.trial.transport import sender

    host = job.host()
    log, checkpoint = host.folder.files / "train.log", host.folder.files / "checkpoint"
    write = sender.write_parcel

    def slow(*arguments: object, **named: object) -> None:
        write(*arguments, **named)  # type: ignore[arg-type]
        for path in (log, *([checkpoint] if grows else [])):
            with path.open("a") as file:
                file.write("x")

    monkeypatch.setattr(sender, "write_parcel", slow)
    grows = False
    log.write_text("xx")
    checkpoint.write_text("whole")
    assert host.packer.pack(job.packed, with_files=True) is None  # new files may be incomplete
    host.post()
    job.receive()
    assert job.content()["files/train.log"] == "xxx"
    assert job.content()["files/checkpoint"] == "whole"
    grows = True
    checkpoint.write_text("a")  # again from its start
    assert host.packer.pack(job.packed, with_files=True) is None


class _Slow:
    """A carrier and a packer, whose files take 100 s of a clock to arrive."""

    def __init__(self) -> None:
        self.now, self.sent, self.left_out = 1000.0, list[bool](), 0

    def send(self, path: Path, name: str) -> None:
        self.now += 100.0 * self.sent[-1]

    def touch(self, path: str) -> None: ...

    def close(self) -> None: ...

    def delivered(self) -> None: ...

    def pack(self, directory: Path, *, with_files: bool) -> Path:
        self.sent.append(with_files)
        path = directory / "a parcel"
        path.touch()
        return path


def test_large_files_do_not_delay_the_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spearmint.trial.transport import sender

    slow = _Slow()
    monkeypatch.setattr(sender.time, "monotonic", lambda: slow.now)
    made = Sender(slow, slow, tmp_path)  # type: ignore[arg-type]
    monkeypatch.setattr(made._ending, "wait", lambda _: len(slow.sent) == 5 or _forward(slow))
    made.run()
    assert slow.sent == [False, False, True, False, False]
    assert slow.now < 1200


def test_new_files_that_still_grow_are_tried_again_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spearmint.trial.transport import sender

    slow, times = _Slow(), list[float]()

    def pack(directory: Path, *, with_files: bool) -> None:
        if with_files:  # packing takes a minute each time
            times.append(slow.now)
            slow.now, slow.left_out = slow.now + 60.0, slow.left_out + 1

    slow.pack = pack  # type: ignore[assignment, method-assign]
    monkeypatch.setattr(sender.time, "monotonic", lambda: slow.now)
    made = Sender(slow, slow, tmp_path)  # type: ignore[arg-type]
    monkeypatch.setattr(made._ending, "wait", lambda _: len(times) == 3 or _forward(slow))
    made.run()
    assert times[1] - times[0] < 70 < 1200 < times[2] - times[1]


def test_packing_stops_in_the_middle_of_a_file(job: Job) -> None:
    host = job.host()
    (host.folder.files / "checkpoint").write_bytes(os.urandom(9 << 20))
    host.packer.stops = iter([False] * 4 + [True] * 9).__next__
    with pytest.raises(Interrupted):
        host.packer.pack(job.packed, with_files=True)
    assert not list(job.packed.iterdir())
    made = Sender(_Slow(), host.packer, job.packed)
    made._ending.set()
    with pytest.raises(Interrupted):
        host.packer.pack(job.packed, with_files=True)
    host.packer.stops = bool
    host.post()
    job.receive()
    assert (job.folder.files / "checkpoint").stat().st_size == 9 << 20


class _LateConnection(_Slow):
    """A carrier that opens its connection after the first call of ``close``."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = [threading.Event(), threading.Event()]
        self.entered, self.is_cut = threading.Event(), False

    def send(self, path: Path, name: str) -> None:
        self.entered.set()
        self.is_cut = all(event.wait(60) for event in self.closed)
        raise OSError("the connection is closed")

    def close(self) -> None:
        self.closed[self.closed[0].is_set()].set()


def test_a_connection_that_is_opened_during_the_stop_is_cut(tmp_path: Path) -> None:
    late = _LateConnection()
    made = Sender(late, late, tmp_path)  # type: ignore[arg-type]
    made.start()
    assert late.entered.wait(60)
    made.stop()
    assert late.is_cut


def _forward(slow: _Slow) -> bool:
    slow.now += 2.0
    return False


# The proxy of HTCondor


def test_a_hundred_megabytes(job: Job, tmp_path: Path) -> None:
    host = job.host()
    block = os.urandom(1 << 20)
    with host.output.open("wb") as file:
        for _ in range(100):
            file.write(block)
    path = host.pack()
    with proxy_of(job.box) as proxy:
        Chirp(proxy.configuration(tmp_path / "chirp")).send(path, path.name)
    job.receive()
    assert job.output.stat().st_size == 100 << 20
    with job.output.open("rb") as file:
        assert all(file.read(1 << 20) == block for _ in range(100))


def test_the_proxy_fails(job: Job, tmp_path: Path) -> None:
    host = job.host()
    host.prints("x" * 100_000)
    path = host.pack()
    with proxy_of(job.box) as proxy:
        chirp = Chirp(proxy.configuration(tmp_path / "chirp"))
        proxy.fails_after = 10
        with pytest.raises(OSError, match="-6"):
            chirp.send(path, path.name)
        job.receive()
        assert not job.output.exists()
        proxy.fails_after, proxy.loses_answers = None, True
        for _ in range(2):  # it arrives, but the host does not know
            with pytest.raises(OSError, match="-17"):
                chirp.send(path, path.name)
            job.receive()
        proxy.loses_answers = False
        chirp.send(path, path.name)
        chirp.touch("a marker")
    job.receive()
    assert job.content()["output"] == "x" * 100_000
    assert (job.box / "a marker").exists()


def test_a_proxy_of_another_job(job: Job, tmp_path: Path) -> None:
    with proxy_of(job.box) as proxy:
        file = proxy.configuration(tmp_path / "chirp")
        file.write_text(file.read_text().replace("c00k1e", "guess"))
        with pytest.raises(OSError, match="cookie"):
            Chirp(file).touch("marker")
    with pytest.raises(ConnectionRefusedError):
        Chirp(file).touch("marker")
