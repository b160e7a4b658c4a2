"""Searches on a cell that is healthy before and after every test, and what failed ones said."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Generator, Iterator

import pytest

from tests.on_hosts.searches import STARTED, SgeSearch
from tests.testbed.cell import Cell
from tests.waiting import until

MakeSearch = Callable[..., SgeSearch]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with a failure what the searches said, and the jobs in their queue."""
    report = yield
    if report.failed and call.when == "call":
        for search in STARTED:
            with contextlib.suppress(Exception):  # its hosts may be lost
                report.sections.append((f"search {search.directory}", search.describe()))
    if call.when == "teardown":
        STARTED.clear()
    return report


@pytest.fixture
def make_search(cell: Cell, request: pytest.FixtureRequest) -> Iterator[MakeSearch]:
    """Return a function that creates searches in the shared home.

    At the end it repairs the cell, so that a failed test does not make later tests fail.
    """
    made: list[SgeSearch] = []

    def make(directory: str = request.node.name, **options: object) -> SgeSearch:
        names = (f"{directory}-{number}" if number else directory for number in itertools.count())
        path = next(path for name in names if not (path := cell.home / name).exists())
        made.append(SgeSearch(cell, path, **options))
        return made[-1]

    yield make
    for search in made:
        search.stop()
    heal(cell)


def heal(cell: Cell) -> None:
    """Boot every host, start every daemon, and delete all jobs."""
    for node in cell.hosts:
        if not node.is_up:
            node.boot()
        while node.run("umount", "-l", str(cell.home)).returncode == 0:
            pass
    if not cell.master.processes("sge_qmaster"):
        cell.start_master()
    for node in cell.hosts:
        if not node.processes("sge_execd"):
            cell.start_execd(node)
    until(lambda: cell.hosts_up() == len(cell.names), 60, 0.2)
    if cell.run("qstat", "-u", "*").stdout.strip():
        cell.run("qdel", "-u", "*")
        cell.wait_idle(90)
