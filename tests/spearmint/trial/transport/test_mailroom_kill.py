"""What a host sends arrives whole, whenever the controller is killed."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spearmint.trial.transport import mailroom, restore
from spearmint.trial.transport.mailroom import OUTBOX, Mailroom
from tests.spearmint.trial.transport.sides import KEY, TOKEN, Job


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
