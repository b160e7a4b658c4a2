"""Each fix that ``sge-jobs check`` prints works: a manager runs it, and the problem is gone."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.on_hosts.cell_commands import command
from tests.testbed.cell import Cell
from tests.waiting import until

pytestmark = pytest.mark.sge

OFF = "calendar_name never\nyear NONE\nweek mon-sun=off\n"
DEAD = """\
hostname dead01
load_scaling NONE
complex_values gpu=2
user_lists NONE
xuser_lists NONE
projects NONE
xprojects NONE
usage_scaling NONE
report_variables NONE
"""


@dataclass(frozen=True, kw_only=True)
class Break:
    """Calls that break the cell, what check must name, and the part of the fix to run.

    Attributes:
        fix: Pattern of the commands in the fix; NUMBER in them is 4.
    """

    calls: tuple[str, ...]
    what: str
    fix: str


BREAKS = {
    "a host that no longer exists": Break(
        calls=(
            "sh -c 'echo 10.99.0.1 dead01 >> /etc/hosts'",
            "qconf -Ae /tmp/dead01",
            "qconf -as dead01",
            "qconf -aattr hostgroup hostlist dead01 @allhosts",
            "qconf -aattr queue hostlist dead01 all.q",
        ),
        what="host dead01 does not respond",
        fix=r"no longer exists: (.*)",
    ),
    "a host in no queue": Break(
        calls=("qconf -dattr hostgroup hostlist node002 @allhosts",),
        what="host node002 is in no queue",
        fix=r"(.*)",
    ),
    "a disabled queue": Break(
        calls=("qmod -d all.q@node001",), what="queue all.q@node001 is disabled", fix=r"(.*)"
    ),
    "a suspended queue": Break(
        calls=("qmod -sq all.q@node001",), what="queue all.q@node001 is suspended", fix=r"(.*)"
    ),
    "no slots": Break(
        calls=("qconf -rattr queue slots 0 all.q",), what="all.q@master has no slots", fix=r"(.*)"
    ),
    "not a submit host": Break(
        calls=("qconf -ds node002", "qconf -dh node002"),
        what="host node002 is not a submit host",
        fix=r"on the master: (.*)",
    ),
    "fewer GPUs than configured": Break(
        calls=("qconf -mattr exechost complex_values gpu=4,slots=4 node001",),
        what="host node001 has 2 GPUs, but the cell is configured for 4",
        fix=r"on the master: (sge-jobs .*)",
    ),
    "a queue without a starter": Break(
        calls=("qconf -Aq /tmp/other.q",),
        what="queue other.q has no starter",
        fix=r"(qconf -mattr .*)",
    ),
}


def problems(cell: Cell) -> list[dict[str, str]]:
    return json.loads(command(cell, "check", "--json", uid=0).stdout)  # type: ignore[no-any-return]


@pytest.fixture(autouse=True)
def files(cell: Cell) -> Iterator[None]:
    """Write the files that the calls read; remove the other queue at the end."""
    cell.master.write("/tmp/dead01", DEAD)
    queue = cell.qconf("-sq", "all.q")
    queue = re.sub(r"(?m)^qname .*", "qname other.q", queue)
    queue = re.sub(r"(?m)^starter_method .*", "starter_method NONE", queue)
    cell.master.write("/tmp/other.q", queue)
    yield
    cell.run("qconf", "-dq", "other.q")


@pytest.mark.parametrize("case", BREAKS.values(), ids=BREAKS.keys())
def test_the_fix_that_check_prints_works(cell: Cell, case: Break) -> None:
    until(lambda: problems(cell) == [], 60, 0.5)
    for call in case.calls:
        done = cell.run(*shlex.split(call))
        assert done.returncode == 0, done.stdout + done.stderr
    found: list[dict[str, str]] = []

    def is_found() -> bool:
        found[:] = [problem for problem in problems(cell) if case.what in problem["what"]]
        return bool(found)

    until(is_found, 60, 0.5)
    fix = re.search(case.fix, found[0]["fix"])
    assert fix is not None, found
    cell.checked("sh", "-ec", fix[1].replace("NUMBER", "4"))
    until(lambda: problems(cell) == [], 60, 0.5)


def test_a_calendar_is_named(cell: Cell) -> None:
    cell.master.write("/tmp/never", OFF)
    cell.qconf("-Acal", "/tmp/never")
    cell.qconf("-rattr", "queue", "calendar", "never", "all.q")
    try:
        until(lambda: any("calendar never" in p["what"] for p in problems(cell)), 30, 0.5)
        fixes = {problem["fix"] for problem in problems(cell)}
        assert fixes == {"Show it: qconf -scal never"}
    finally:
        cell.qconf("-rattr", "queue", "calendar", "NONE", "all.q")
        cell.qconf("-dcal", "never")


def test_the_number_of_calls_does_not_grow_with_the_hosts(cell: Cell) -> None:
    code = (
        "from sge_jobs.cli.main import main\nfrom sge_jobs.queue.commands import Commands\n"
        "run, calls = Commands.run, []\n"
        "def count(self, name, *a, **k): calls.append(name); return run(self, name, *a, **k)\n"
        "Commands.run = count\n"
        "try: main(['check'])\nexcept SystemExit: pass\nprint(len(calls))"
    )

    def calls() -> int:
        return int(cell.checked("python", "-c", code).splitlines()[-1])

    assert calls() <= 20
