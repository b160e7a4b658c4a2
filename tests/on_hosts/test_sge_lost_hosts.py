"""Loss of a host, the master, the disk, or two of these during a search."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from tests.on_hosts.conftest import MakeSearch
from tests.on_hosts.searches import SgeSearch
from tests.testbed.cell import UID, Cell
from tests.testbed.fabric import Node

pytestmark = pytest.mark.sge


@pytest.fixture(scope="module", autouse=True)
def impatient(cell: Cell) -> None:
    """Rerun jobs of a lost host early, as a site can configure that never restarts its master."""
    text = cell.qconf("-sconf", "global").partition("\n")[2]
    for name, value in (("max_unheard", "00:00:15"), ("reschedule_unknown", "00:00:05")):
        text = re.sub(rf"(?m)^{name} .*", f"{name} {value}", text)
    cell.master.write("/tmp/global", text)
    cell.qconf("-Mconf", "/tmp/global")


def lose_one(cell: Cell, search: SgeSearch) -> str:
    """Kill a host with running trials, not the master; return its name."""
    victim = next(run for run in search.wait_running() if run.host != cell.master.name)
    cell.lose(search.node(victim))
    search.release()
    return victim.host


def assert_ran_again(search: SgeSearch, host: str) -> None:
    """Check that its trials finished on other hosts and do not count as lost."""
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
    controller = search.start("--max-retries=0", "--queue-ahead=3")
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
    options = ("--max-retries=0", "--queue-ahead=3")
    controller = search.start(*options)
    host = lose_one(cell, search)
    controller.kill()
    search.start(*options).end()
    search.assert_complete(lost=[host])
    assert_ran_again(search, host)


def test_the_master_and_the_command_are_killed(cell: Cell, make_search: MakeSearch) -> None:
    search = make_search()
    controller = search.start()
    search.wait_running()
    cell.kill("sge_qmaster")
    controller.kill()
    too_early = search.start().end(status=1)
    assert "gridengine-master" in too_early
    time.sleep(5)
    cell.start_master()
    search.start().end()
    search.assert_complete()


@contextmanager
def read_only(cell: Cell, nodes: Sequence[Node]) -> Iterator[None]:
    """Make the shared home read-only on hosts, including the master.

    A read-only mount does not affect files that are open for writing, so this also limits the
    command to files of 0 bytes.
    """
    home = str(cell.home)
    for node in nodes:
        assert node.run("mount", "--bind", "-o", "ro", home, home).returncode == 0
    limit_files(cell, "0")
    assert cell.run("touch", f"{home}/mark", uid=UID).returncode == 1
    yield
    limit_files(cell, "unlimited")
    for node in nodes:
        assert node.run("umount", "-l", home).returncode == 0


def limit_files(cell: Cell, size: str) -> None:
    """Limit the size of files that the command can write."""
    pid = cell.master.process("bin/spearmint --driver=SGE")
    limit = ["prlimit", f"--pid={pid}", f"--fsize={size}:"]
    as_user = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]
    subprocess.run([*as_user, *limit], check=True)


@pytest.mark.parametrize("ahead", [0, 3])
def test_the_disk_is_read_only_for_a_while(cell: Cell, make_search: MakeSearch, ahead: int) -> None:
    search = make_search()
    controller = search.start(f"--queue-ahead={ahead}")
    search.wait_running()
    with read_only(cell, cell.hosts):
        search.release()
        time.sleep(10)
    controller.end()
    search.assert_complete()
    assert len(search.runs()) == search.n_trials


def test_the_disk_is_read_only_for_the_command(cell: Cell, make_search: MakeSearch) -> None:
    search = make_search()
    controller = search.start()
    search.wait_running()
    with read_only(cell, [cell.master]):
        controller.wait_for("Retrying")
        time.sleep(7)
        print(controller.output)
    controller.end()
    search.assert_complete()
    assert len(search.runs()) == search.n_trials


def test_the_masters_host_is_lost_with_the_command_on_it(
    cell: Cell, make_search: MakeSearch
) -> None:
    search = make_search()
    search.start()
    search.wait_running()
    cell.lose(cell.master)
    cell.boot_again(cell.master)
    search.start().end()
    search.assert_complete()  # hosts need a minute to notice the new master
