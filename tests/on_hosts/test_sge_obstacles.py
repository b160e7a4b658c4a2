"""Jobs that can never start: Grid Engine's reason and a fix; silence about a busy cell."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.on_hosts.cell_commands import door, start
from tests.testbed.cell import USER, Cell
from tests.waiting import until

pytestmark = pytest.mark.sge

QUOTA = "{{\nname closed\nenabled TRUE\nlimit users {{*}} to {limit}\n}}\n"
NEVER = "calendar_name never\nyear NONE\nweek mon-sun=off\n"
NO_CHANGE: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Case:
    """A request, the changes of the cell that make it impossible, and how they are undone.

    Attributes:
        request: Options of qsub.
        changes, undo: Calls of a command as a manager; ``FILE`` is a file with ``text``.
        reason, fix: What the obstacle must contain.
    """

    request: tuple[str, ...] = ()
    text: str = ""
    changes: tuple[tuple[str, ...], ...] = NO_CHANGE
    undo: tuple[tuple[str, ...], ...] = NO_CHANGE
    reason: str
    fix: str


def queue(name: str, value: str, before: str) -> dict[str, tuple[tuple[str, ...], ...]]:
    def change(to: str) -> tuple[str, ...]:
        return ("qconf", "-rattr", "queue", name, to, "all.q")

    return {"changes": (change(value),), "undo": (change(before),)}


def quota(limit: str) -> dict[str, object]:
    return {
        "text": QUOTA.format(limit=limit),
        "changes": (("qconf", "-Arqs", "FILE"),),
        "undo": (("qconf", "-drqs", "closed"),),
        "reason": 'in rule "closed/1"',
        "fix": "qconf -srqs closed",
    }


CASES = {
    "more GPUs than any host has": Case(
        request=("-l", "gpu=3"), reason="hc:gpu=2.000000", fix="at most 2 GPUs"
    ),
    "more slots than any host has": Case(
        request=("-pe", "smp", "5"), reason='PE "smp"', fix="qconf -sp smp"
    ),
    "more memory than any host has": Case(
        request=("-l", "mem_free=90000G"), reason="mem_total=", fix="qhost -F mem_free"
    ),
    "queue and host contradict": Case(
        request=("-q", "all.q@node001", "-l", "hostname=node002"),
        reason="hard queue list",
        fix="qhost -F",
    ),
    "all queues disabled": Case(
        changes=(("qmod", "-d", "*"),),
        undo=(("qmod", "-e", "*"),),
        reason="state d",
        fix="qmod -e all.q@master",
    ),
    "all queues suspended, and memory requested": Case(
        request=("-l", "mem_free=1M"),
        changes=(("qmod", "-sq", "*"),),
        undo=(("qmod", "-usq", "*"),),
        reason="state s",
        fix="qmod -usq all.q@master",
    ),
    "the queue that the job requests is disabled": Case(
        request=("-q", "all.q@node001"),
        changes=(("qmod", "-d", "all.q@node001"),),
        undo=(("qmod", "-e", "all.q@node001"),),
        reason="all.q@node001",
        fix="qmod -e all.q@node001",
    ),
    "the only host with enough GPUs is disabled": Case(
        request=("-l", "gpu=3"),
        changes=(
            ("qconf", "-mattr", "exechost", "complex_values", "gpu=4", "node002"),
            ("qmod", "-d", "all.q@node002"),
        ),
        undo=(
            ("qmod", "-e", "all.q@node002"),
            ("qconf", "-mattr", "exechost", "complex_values", "gpu=2", "node002"),
        ),
        reason="all.q@node002",
        fix="qmod -e all.q@node002",
    ),
    "a calendar": Case(
        text=NEVER,
        changes=(
            ("qconf", "-Acal", "FILE"),
            ("qconf", "-rattr", "queue", "calendar", "never", "all.q"),
        ),
        undo=(
            ("qconf", "-rattr", "queue", "calendar", "NONE", "all.q"),
            ("qconf", "-dcal", "never"),
        ),
        reason="calendar",
        fix="qconf -sq all.q",
    ),
    "a quota of no slots": Case(**quota("slots=0")),  # type: ignore[arg-type]
    "a quota of fewer GPUs": Case(request=("-l", "gpu=2"), **quota("gpu=1")),  # type: ignore[arg-type]
    "no slots": Case(
        **queue("slots", "0", "4"),  # type: ignore[arg-type]
        reason="slots=0",
        fix="qconf -rattr queue slots",
    ),
}


@pytest.fixture(autouse=True)
def idle(cell: Cell) -> Iterator[None]:
    """Delete all jobs after each test."""
    yield
    cell.run("qdel", "-f", "-u", "*")
    cell.wait_idle()


@contextmanager
def changed(cell: Cell, case: Case) -> Iterator[None]:
    cell.master.write("/tmp/change", case.text)
    try:
        for words in case.changes:
            assert cell.run(*(w.replace("FILE", "/tmp/change") for w in words)).returncode == 0
        yield
    finally:
        for words in case.undo:
            cell.run(*words)


def obstacle(cell: Cell, job: str) -> dict[str, str] | None:
    (found,) = door(cell, f"show(q.obstacle({job!r}))")
    return found  # type: ignore[return-value]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_job_that_can_never_start_has_a_reason_and_a_fix(cell: Cell, case: Case) -> None:
    with changed(cell, case):
        found = obstacle(cell, cell.submit("sleep 1", *case.request))
    assert found is not None
    assert case.reason in found["reason"]
    assert case.fix in found["fix"]
    assert not found["passes"]


def test_a_user_without_access_has_a_reason_and_the_job_is_known(cell: Cell) -> None:
    cell.qconf("-au", "root", "others")
    cell.qconf("-rattr", "queue", "user_lists", "others", "all.q")
    try:
        # qsub exits with 1 and "Unable to run job: warning", although the job is in the queue.
        (job, found) = door(
            cell,
            "job = q.submit(JobSpec(name='x', argv=('true',), directory=Path('/')))\n"
            "show(job); show(q.obstacle(job))",
        )
    finally:
        cell.qconf("-rattr", "queue", "user_lists", "NONE", "all.q")
    assert str(job) in cell.run("qstat", "-u", USER).stdout
    assert 'no permission for cluster queue "all.q"' in found["reason"]  # type: ignore[index]
    assert "qconf -sq all.q" in found["fix"]  # type: ignore[index]


BUSY: dict[str, Callable[[Cell], list[str]]] = {
    "GPUs": lambda cell: [cell.submit("sleep 300", "-l", "gpu=1") for _ in range(6)],
    "slots": lambda cell: [cell.submit("sleep 300") for _ in range(12)],
}


@pytest.mark.parametrize("busy", BUSY.values(), ids=BUSY.keys())
def test_a_busy_cell_is_no_obstacle(cell: Cell, busy: Callable[[Cell], list[str]]) -> None:
    running = busy(cell)
    until(lambda: cell.run("qstat", "-s", "r", "-u", "*").stdout.count(USER) == len(running), 60)
    requests = [("-l", "gpu=1"), ("-l", "gpu=2"), ("-pe", "smp", "4"), ("-l", "mem_free=1M"), ()]
    waiting = [cell.submit("sleep 1", *request) for request in requests]
    cell.run("qmod", "-d", "all.q@node001")  # one of three hosts
    try:
        found = [obstacle(cell, job) for job in waiting]
    finally:
        cell.run("qmod", "-e", "all.q@node001")
    assert found == [None] * len(requests)
    assert obstacle(cell, running[0]) is None
    assert obstacle(cell, "99999") is None
    held = cell.submit("sleep 1", "-h", "-l", "gpu=3")
    assert obstacle(cell, held) is None


def test_lost_hosts_are_an_obstacle_that_passes(cell: Cell) -> None:
    for node in cell.hosts:
        cell.kill("sge_execd", node)
    try:
        until(lambda: set(_states(cell)) in ({"u"}, {"au"}), 90, 0.5)
        job = cell.submit("true", "-l", "gpu=1")
        found = obstacle(cell, job)
    finally:
        for node in cell.hosts:
            cell.start_execd(node)
        until(lambda: cell.hosts_up() == len(cell.names), 60, 0.2)
    assert found is not None
    assert found["passes"]
    assert "state u" in found["reason"]


def _states(cell: Cell) -> list[str]:
    rows = [line.split() for line in cell.run("qstat", "-f").stdout.splitlines()]
    return [row[5] if len(row) > 5 else "" for row in rows if row[0].startswith("all.q@")]


def test_run_says_that_its_job_can_never_start_and_why(cell: Cell) -> None:
    running = start(cell, "run", "--gpus=3", "--", "true")
    assert running.stderr is not None
    said: list[str] = []
    while not said or "at most 2 GPUs" not in said[-1]:
        said.append(running.stderr.readline())
        assert said[-1], said
    assert "hc:gpu=2.000000" in "".join(said)
    os.killpg(running.pid, signal.SIGINT)
    running.communicate()
    cell.wait_idle()
