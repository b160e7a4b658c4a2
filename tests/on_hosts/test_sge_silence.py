"""Nothing waits in silence: searches on a cell that can never, not now, or only later run them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator

import pytest

from tests.on_hosts.conftest import MakeSearch
from tests.on_hosts.searches import SgeSearch
from tests.testbed.cell import Cell
from tests.waiting import until

pytestmark = pytest.mark.sge

MESSAGE = "Pending trials cannot start"


@pytest.fixture(autouse=True)
def enabled(cell: Cell) -> Iterator[None]:
    """Enable all queues after each test."""
    yield
    cell.run("qmod", "-e", "*")


def tickets(search: SgeSearch) -> list[str]:
    folder = search.directory / ".spearmint"
    names = ("tickets/waiting", "tickets/taken", "ended")
    return [str(path) for name in names for path in (folder / name).glob("*")]


def test_more_gpus_than_a_host_has_end_the_command_with_the_reason(
    cell: Cell, make_search: MakeSearch
) -> None:
    search = make_search(trials=3)
    output = search.start("--gpus=3").end(status=1)
    assert output.count(MESSAGE) == 1
    assert "hc:gpu=2.000000" in output
    assert "--gpus" in output
    assert "--wait" in output
    assert not cell.run("qstat", "-u", "*").stdout, "nothing to clean by hand"
    assert tickets(search) == []
    search.start("--gpus=2", "--queue-ahead=1").end()
    search.assert_complete()
    assert tickets(search) == []


def test_a_typo_in_a_resource_ends_the_command_at_once(make_search: MakeSearch) -> None:
    search = make_search(trials=1)
    output = search.start("--request=gpuu=1").end(status=1)
    assert 'unknown resource "gpuu"' in output
    assert "qconf -sc" in output


def test_wait_stays_until_the_queues_are_enabled(cell: Cell, make_search: MakeSearch) -> None:
    search = make_search(trials=6)
    cell.run("qmod", "-d", "*")
    controller = search.start("--wait", "--polling-time=20s")
    fix = controller.wait_for(rf"{MESSAGE}:\n.*state d.*\n.*(qmod -e all\.q@.*)")[1]
    status = json.loads(search.command("status", "--json"))["trials"]
    assert (status["running"], status["queued"]) == (0, 6)
    assert "6 queued" in search.command("status")
    cell.checked(*fix.split())
    output = controller.end()
    assert output.count(MESSAGE) == 1
    search.assert_complete()


def test_a_search_that_has_begun_waits_for_queues_that_are_disabled(
    cell: Cell, make_search: MakeSearch
) -> None:
    search = make_search(trials=12)
    controller = search.start("--queue-ahead=2")
    search.wait_running()
    cell.run("qmod", "-d", "*")
    controller.wait_for(MESSAGE, release=False)
    search.release()
    until(lambda: not search.jobs_in("r"), 60, 0.2, progress=search.recorded)
    time.sleep(6)  # longer than the pause between two checks
    cell.run("qmod", "-e", "*")
    controller.end()
    search.assert_complete()
    assert tickets(search) == []


def test_a_full_cell_gives_no_message(cell: Cell, make_search: MakeSearch) -> None:
    others = [cell.submit("sleep 3000", "-l", "gpu=1") for _ in range(6)]
    search = make_search(trials=3)
    controller = search.start("--gpus=1")
    until(lambda: len(search.jobs_in("qw")) == 3, 30, 0.2)
    time.sleep(20)  # three checks
    assert MESSAGE not in controller.output
    cell.run("qdel", *others)
    assert MESSAGE not in controller.end()
    search.assert_complete()


def test_a_full_limit_of_jobs_is_told_and_the_search_goes_on(
    cell: Cell, make_search: MakeSearch
) -> None:
    before = cell.qconf("-sconf", "global")
    other = cell.submit("sleep 3000")
    cell.master.write("/tmp/conf/global", re.sub(r"(?m)^(max_u_jobs\s+)\d+", r"\g<1>1", before))
    cell.qconf("-Mconf", "/tmp/conf/global")
    try:
        search = make_search(trials=2)
        controller = search.start()
        controller.wait_for("only 1 jobs are allowed per user")
        cell.run("qdel", other)
        controller.end()
    finally:
        cell.master.write("/tmp/conf/global", before)
        cell.qconf("-Mconf", "/tmp/conf/global")
    search.assert_complete()


def test_no_tickets_are_left_after_kills_and_a_resume(make_search: MakeSearch) -> None:
    search = make_search(trials=18, steps=50, hold_from=13)  # it cannot end before the last kill
    for moment_s in (0.1, 0.8, 1.9):
        controller = search.start("--queue-ahead=3")
        controller.wait_for(r"driver SGE\b", release=False)
        time.sleep(moment_s)
        controller.kill()
    search.release()
    # Pilots finish without the command.
    until(lambda: not search.jobs_in("r"), 60, 0.2, progress=search.recorded)
    search.start("--queue-ahead=3").end()
    search.assert_complete()
    assert tickets(search) == []
    search.start("--queue-ahead=3").end()
    assert tickets(search) == []
