"""A job on a GPU that was not given to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.on_hosts.cell_commands import problems
from tests.on_hosts.conftest import MakeSearch
from tests.on_hosts.searches import CODE
from tests.on_hosts.test_sge_jobs_cell import uses
from tests.testbed.cell import Cell
from tests.testbed.fabric import Node
from tests.waiting import until

pytestmark = pytest.mark.sge

HOST = "node001"
APPS = "/tmp/compute-apps"
# What nvidia-smi --query-compute-apps prints: each line of a file, while its process runs.
SMI = f"""#!/bin/sh
while IFS=, read -r uuid pid name; do
    [ -d "/proc/$pid" ] && echo "$uuid, $pid, $name"
done < {APPS} 2> /dev/null
"""
WORDS = "which was not given to this job"


@pytest.fixture
def node(cell: Cell) -> Iterator[Node]:
    """A host whose processes say on which GPUs they compute."""
    found = cell.fabric.nodes[HOST]
    found.write("/usr/local/bin/nvidia-smi", SMI, 0o755)
    found.write(APPS, "", 0o666)
    yield found
    cell.run("qdel", "-f", "-u", "*")
    cell.wait_idle()
    found.write(APPS, "", 0o666)


def stray(cell: Cell, log: str, *options: str) -> str:
    """Submit a job that computes on the GPU of ``HOST`` that it does not have."""
    script = (
        "#!/bin/bash\n"
        f'other=$(echo "GPU-{HOST}-0 GPU-{HOST}-1" | sed "s/$CUDA_VISIBLE_DEVICES//" | xargs)\n'
        f'sleep 3000 & echo "$other,$!,train me" >> {APPS}; wait\n'
    )
    asked = ("-l", f"gpu=1,hostname={HOST}", "-o", log)
    return cell.submit(script, *asked, *options)


def test_a_job_on_another_gpu_reads_it_once_in_its_log(cell: Cell, node: Node) -> None:
    log = cell.home / "stray.log"
    job = stray(cell, str(log))
    until(lambda: log.exists() and WORDS in log.read_text(), 60, 0.2)
    until(lambda: f"job {job} uses GPU" in problems(cell), 60, 0.2)
    (intruder,) = (one for use in uses(cell) for one in use.intruders)
    assert intruder.job == job
    assert str(intruder.pid) in log.read_text()
    before = node.run("date", "+%s").stdout
    until(lambda: int(node.run("date", "+%s").stdout) > int(before) + 7, 30, 1)
    assert log.read_text().count(WORDS) == 1


def test_the_log_that_a_job_names_is_written_with_the_rights_of_its_user(
    cell: Cell, node: Node
) -> None:
    victim, mine = Path("/root/victim"), cell.home / "named.log"
    node.write(str(victim), "", 0o644)
    stray(cell, "/dev/null", "-v", f"SGE_JOBS_LOG={victim}")
    job = stray(cell, "/dev/null", "-v", f"SGE_JOBS_LOG={mine}")
    until(lambda: mine.exists() and f"of job {job}" in mine.read_text(), 60, 0.2)
    until(lambda: sum(len(use.intruders) for use in uses(cell)) == 2, 60, 0.2)
    assert node.inside(victim).read_text() == ""


def test_a_trial_on_another_gpu_reads_it_in_its_output(
    cell: Cell, node: Node, make_search: MakeSearch
) -> None:
    other = f"""
        gpus = ["GPU-{HOST}-0", "GPU-{HOST}-1"]
        mine = os.environ["CUDA_VISIBLE_DEVICES"]
        if mine in gpus:
            with open({APPS!r}, "a") as apps:
                print(gpus[gpus[0] == mine], os.getpid(), "train", sep=",", file=apps)
"""
    code = CODE.replace("        for step in", f"{other}        for step in")
    search = make_search(trials=6, steps=1, code=code)
    controller = search.start()
    outputs = search.directory / "output"
    until(lambda: any(WORDS in path.read_text() for path in outputs.glob("*")), 60, 0.2)
    controller.end()
    search.assert_complete()
