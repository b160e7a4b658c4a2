"""A host, the master or the disk is lost while a search runs, or two of these at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ..testbed.cell import Cell
from .conftest import MakeSearch
from .searches import SgeSearch

pytestmark = pytest.mark.sge
_UNKNOWN = "reschedule_unknown"


@pytest.fixture(scope="module", autouse=True)
def impatient(cell: Cell) -> None:
    """Let jobs of a lost host run again soon, as a site may that does not restart its master."""
    lines = cell.qconf("-sconf", "global").splitlines()
    wanted = [f"{_UNKNOWN} 00:00:05" if line.startswith(_UNKNOWN) else line for line in lines]
    cell.master.write("/tmp/global", "\n".join(wanted[1:]) + "\n")
    cell.qconf("-Mconf", "/tmp/global")


def lose_one(cell: Cell, search: SgeSearch) -> str:
    """Lose a host with running trials, not the master; return its name."""
    victim = next(run for run in search.wait_running() if run.host != cell.master.name)
    cell.lose(search.node(victim))
    return victim.host


def assert_ran_again(search: SgeSearch, host: str) -> None:
    """Its trials ran to their end on other hosts, without counting as lost."""
    runs = search.runs()
    ended = {run.trial for run in runs if run.host == host and run.value is None}
    assert len(ended) == 2
    assert all(run.host != host for run in runs if run.trial in ended and run.value is not None)
    assert not any(trial["lost"] for trial in search.trials())


def test_the_trials_of_a_lost_host_run_elsewhere(cell: Cell, make_search: MakeSearch) -> None:
    search = make_search()
    controller = search.start("--max-retries=0")
    host = lose_one(cell, search)
    controller.end()
    search.assert_complete(lost=[host])
    assert_ran_again(search, host)


def test_a_host_is_lost_and_comes_back(cell: Cell, make_search: MakeSearch) -> None:
    search = make_search()
    controller = search.start("--max-retries=0")
    host = lose_one(cell, search)
    time.sleep(5)
    cell.boot_again(cell.fabric.nodes[host])
    controller.end()
    search.assert_complete()


def test_an_execution_daemon_does_not_come_back(cell: Cell, make_search: MakeSearch) -> None:
    search = make_search()
    controller = search.start()
    victim = next(run for run in search.wait_running() if run.host != cell.master.name)
    cell.kill("sge_execd", search.node(victim))
    controller.end()
    search.assert_complete(lost=[victim.host])
    assert len(search.runs()) == search.n_trials


def test_a_host_is_lost_and_the_command_killed(cell: Cell, make_search: MakeSearch) -> None:
    search = make_search()
    controller = search.start("--max-retries=0")
    host = lose_one(cell, search)
    controller.kill()
    search.start("--max-retries=0").end()
    search.assert_complete(lost=[host])
    assert_ran_again(search, host)


def test_the_master_and_the_command_are_killed(cell: Cell, make_search: MakeSearch) -> None:
    search = make_search()
    controller = search.start()
    search.wait_running()
    assert cell.kill("sge_qmaster") == 1
    controller.kill()
    too_early = search.start().end(status=1)
    assert "master does not answer" in too_early
    time.sleep(5)
    cell.start_master()
    search.start().end()
    search.assert_complete()


def test_the_masters_host_is_lost_with_the_command_on_it(
    cell: Cell, make_search: MakeSearch
) -> None:
    search = make_search()
    search.start()
    search.wait_running()
    cell.lose(cell.master)
    cell.boot_again(cell.master)
    search.start().end()
    search.assert_complete()


@contextmanager
def read_only(cell: Cell, path: Path) -> Iterator[None]:
    """Make a shared directory read-only on all hosts; what is open for writing stays so."""
    for node in cell.hosts:
        assert node.run("mount", "--bind", "-o", "ro", str(path), str(path)).returncode == 0
    yield
    for node in cell.hosts:
        assert node.run("umount", "-l", str(path)).returncode == 0


def test_the_disk_is_read_only_for_a_while(cell: Cell, make_search: MakeSearch) -> None:
    search = make_search(trials=18)
    controller = search.start()
    search.wait_running()
    with read_only(cell, cell.home):
        assert cell.run("touch", str(search.directory / "mark"), uid=2401).returncode == 1
        time.sleep(10)
    controller.end()
    search.assert_complete()
