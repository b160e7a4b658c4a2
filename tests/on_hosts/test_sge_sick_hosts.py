"""A host that cannot start jobs during a search: every trial finishes on the other hosts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from sge_jobs.node.claim.lock_files import DIRECTORY
from tests.on_hosts.cell_commands import command
from tests.on_hosts.conftest import MakeSearch
from tests.on_hosts.searches import SgeSearch
from tests.testbed.cell import UID, Cell
from tests.testbed.fabric import Node
from tests.waiting import until

pytestmark = pytest.mark.sge

CONF = "/etc/sge-jobs.conf"


@pytest.fixture(scope="module", autouse=True)
def keeps_hosts(cell: Cell) -> None:
    """Let sick hosts stay in the rotation: a search must finish without the help of the sensors."""
    assert command(cell, "setup", "--keep-hosts", uid=0).returncode == 0
    for node in cell.hosts:
        cell.kill("sge_execd", node)
        cell.start_execd(node)
    until(lambda: cell.hosts_up() == len(cell.names), 60, 0.2)


@pytest.fixture
def node(cell: Cell) -> Iterator[Node]:
    """The host to make sick, which offers its GPUs before; healthy again afterwards."""
    found = cell.fabric.nodes["node001"]
    until(lambda: "gpu=2.0" in cell.checked("qhost", "-F", "gpu", "-h", "node001"), 60, 0.2)
    yield found
    found.run("rm", "-f", CONF)
    while found.run("umount", DIRECTORY).returncode == 0:
        pass


def take_python(node: Node) -> None:
    """Let the starter behave as on a host without Python; the sensor runs already."""
    node.write(CONF, 'without_python "$@"\n')


def fill_locks(node: Node) -> None:
    """Put a full file system over the directory of the locks."""
    for argv in (
        ("mount", "-t", "tmpfs", "-o", "size=4k,mode=0700", "full", DIRECTORY),
        ("dd", "if=/dev/zero", f"of={DIRECTORY}/x", "bs=4k", "count=1"),
    ):
        assert node.run(*argv).returncode == 0


def failed_there(search: SgeSearch, host: str = "node001") -> int:
    """Return how often a trial was moved away from ``host``."""
    return len(re.findall(rf"trial \d+ is rerun on another host.*\b{host}\b", search.output()))


def assert_healthy_end(search: SgeSearch) -> None:
    search.assert_complete(lost=["node001"])
    assert len(search.runs()) == search.n_trials
    assert not any(run.host == "node001" for run in search.runs())
    assert not any(trial["lost"] for trial in search.trials())


def test_a_host_without_python_is_told_and_costs_no_trial(
    make_search: MakeSearch, node: Node
) -> None:
    take_python(node)
    search = make_search(trials=30, steps=10)
    controller = search.start("--queue-ahead=3", "--max-retries=0")
    # The other GPUs are busy until then, so that no pilot claims the trials of the sick host.
    pattern = r"Trials avoid host node001 .* could not start there: (.*)"
    told = controller.wait_for(pattern, release=False)[1]
    status = json.loads(search.command("status", "--json"))
    assert [host["host"] for host in status["avoided_hosts"]] == ["node001"]
    assert status["avoided_hosts"][0]["reason"] == told
    assert told in search.command("status")
    controller.end()
    assert_healthy_end(search)
    assert 2 <= failed_there(search) <= 6 + 3
    outputs = [path.read_text() for path in (search.directory / "output").iterdir()]
    assert sum(f"sge-jobs: node001: {told}" in text for text in outputs) >= 2


def test_a_full_lock_directory_costs_no_trial(make_search: MakeSearch, node: Node) -> None:
    fill_locks(node)
    search = make_search(trials=30, steps=10)
    search.start().end()
    assert_healthy_end(search)


def test_a_host_that_reschedules_for_ever_costs_no_trial(
    make_search: MakeSearch, node: Node
) -> None:
    node.write(CONF, "exit 99\n")
    search = make_search(trials=30, steps=10)
    controller = search.start()
    # The other hosts are busy until then.
    until(lambda: failed_there(search) >= 2, 60, 0.2, progress=search.output)
    controller.end()
    assert_healthy_end(search)


def test_a_resumed_search_avoids_the_host_and_a_healthy_one_is_used_again(
    cell: Cell, make_search: MakeSearch, node: Node
) -> None:
    take_python(node)
    search = make_search(trials=12, steps=10)
    controller = search.start()
    controller.wait_for("Trials avoid host node001 ", release=False)
    controller.kill()
    node.run("rm", CONF)
    hosts = search.directory / ".spearmint" / "hosts.json"
    kept = json.loads(hosts.read_text())
    kept["node001"]["until"] = kept["node001"]["since"] + 30
    cell.checked("sh", "-c", f"cat > {hosts}", uid=UID, stdin=json.dumps(kept))
    until(lambda: kept["node001"]["until"] < float(cell.checked("date", "+%s")), 60, 1)
    controller = search.start()
    # The other GPUs are busy until then.
    until(
        lambda: any(run.host == "node001" for run in search.runs()),
        60,
        0.2,
        progress=lambda: controller.output,
    )
    controller.end()
    search.assert_complete()


def test_an_error_on_every_host_is_told_and_moves_end(make_search: MakeSearch) -> None:
    search = make_search(trials=2)
    controller = search.start("--submit-option=-wd", "--submit-option=/nowhere")
    controller.wait_for(r"job \d+ .*\(Eqw\): .*/nowhere.*\n.*qmod -cj")
    controller.kill()
    search.command("cleanup", "--yes")
