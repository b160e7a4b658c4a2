"""One process at a time balances a cluster, and it notes what it does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from starcluster.balance import turn, work
from starcluster.balance.loop import Balancer
from starcluster.balance.turn import Turn
from starcluster.balance.work import Work
from starcluster.errors import ClusterError
from tests.starcluster.balance.test_journal import ThisMachine


class Shell(ThisMachine):
    def checked(self, argv: Any, *, stdin: str = "", timeout_s: float = 0) -> str:
        return super().checked(argv, stdin=stdin)

    def close(self) -> None:
        pass


def connect() -> Any:
    return Shell()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(turn, "FILE", str(tmp_path / "new/turn"))
    monkeypatch.setattr(turn, "UNIT_FILE", str(tmp_path / "unit"))
    monkeypatch.setattr(work, "FILE", str(tmp_path / "new/work"))
    made: list[Turn] = []
    monkeypatch.setattr(Turn, "__init__", _noting(made, Turn.__init__))
    yield tmp_path
    for each in made:  # a turn is renewed until it ends, also after its test
        each.__exit__()


def _noting(made: list[Turn], init: Any) -> Any:
    def noting(self: Turn, **named: Any) -> None:
        made.append(self)
        init(self, **named)

    return noting


def other(monkeypatch: pytest.MonkeyPatch, process: str) -> Turn:
    with monkeypatch.context() as patched:
        patched.setattr(turn, "this_process", lambda: (process, "bob@laptop (process 7)"))
        return Turn(on_master=False)


def test_a_second_process_sees_the_first_until_that_one_ends(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = other(monkeypatch, "boot/pid 7 1.0")
    with Turn(on_master=False) as first:
        assert first.take(connect) is None
        assert first.take(connect) is None
        holder = second.take(connect)
        assert holder is not None
        assert holder.name == first.name
    with second:
        assert second.take(connect) is None


def test_a_process_that_was_killed_or_no_longer_renews_loses_its_turn(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, _ = turn.this_process()
    machine = mine.split()[0]
    with other(monkeypatch, f"{machine} 999999999 1.0") as killed, Turn(on_master=False) as next_:
        assert killed.take(connect) is None
        assert next_.take(connect) is None  # the process has ended on this machine
        far = other(monkeypatch, "elsewhere/pid 7 1.0")
        assert far.take(connect) is not None
        lines = (folder / "new/turn").read_text().splitlines()
        (folder / "new/turn").write_text("\n".join([*lines[:2], "1\n"]))
        assert far.take(connect) is None
        assert next_.take(connect) is not None


def test_the_balancer_of_the_master_comes_first_also_after_a_reboot(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with other(monkeypatch, "boot/pid 7 1.0") as laptop, Turn(on_master=True) as master:
        assert laptop.take(connect) is None
        assert master.take(connect) is not None  # until the laptop notices
        (folder / "unit").touch()
        holder = laptop.take(connect)
        assert (holder and holder.name) == turn.ON_MASTER
        assert master.take(connect) is None
        assert Turn(on_master=True).take(connect) is None  # after kill -9 or a reboot


@pytest.mark.parametrize("here", [False, True])
def test_a_balancer_yields_to_another_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, here: bool
) -> None:
    assert other(monkeypatch, "boot/pid 7 1.0").take(connect) is None
    master = SimpleNamespace(instance=None)
    cluster: Any = SimpleNamespace(name="gpu", master=master, is_here=here, close=lambda: None)
    cluster.shell = lambda instance: Shell()
    said: list[str] = []
    lifecycle: Any = None
    limits: Any = None
    with Turn(on_master=here) as mine:
        balancer = Balancer(lifecycle, limits, turn=mine, say=said.append)
        if here:
            assert balancer._waits_for_turn(cluster)
            assert "bob@laptop" in said[0]
        else:
            with pytest.raises(ClusterError, match=r"gpu.*bob@laptop") as caught:
                balancer._waits_for_turn(cluster)
            assert "balance --uninstall gpu" in caught.value.fix


def test_work_is_noted_until_it_is_complete(folder: Path) -> None:
    (folder / "new").mkdir()
    assert work.noted(connect()) is None
    todo = Work(kind=work.ADD, aliases=("node001", "node002"))
    work.note(connect(), todo)
    assert work.noted(connect()) == todo
    (folder / "new/work").write_text("rm -rf /\n")
    assert work.noted(connect()) is None
    work.forget(connect())
    assert work.noted(connect()) is None
