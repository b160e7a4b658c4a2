"""What the host packs: files that change, large files, and the end of the trial."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from spearmint.trial.transport.packing import Interrupted
from spearmint.trial.transport.sender import Sender
from tests.spearmint.trial.transport.sides import Job


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
