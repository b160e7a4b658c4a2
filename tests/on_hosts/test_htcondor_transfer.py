"""The driver for HTCondor on a real pool whose hosts share no files."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator

import pytest

from tests.on_hosts.batches import BATCHES, CONFIG_OF_BATCHES, assert_complete_in_batches
from tests.on_hosts.condor_searches import CondorSearch
from tests.on_hosts.searches import CODE
from tests.testbed.cell import UID
from tests.testbed.condor import HIDDEN, CondorPool
from tests.waiting import text_of, until

pytestmark = pytest.mark.htcondor

SIZE = 20 << 20
# Records of runs go to a directory of the test, which all hosts have.
TRIAL = CODE.replace("import contextlib", "import spearmint, contextlib").replace(
    "            note()\n            with",
    "            note()\n            spearmint.report(step, 1.0)\n"
    "            print('step', step, flush=True)\n            with",
)
TRIAL += f"""
assert len(Path(__file__).with_name("data.bin").read_bytes()) == {SIZE}
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[CondorPool]:
    with CondorPool(shares_files=False) as made:
        yield made


def make_search(pool: CondorPool, name: str, **options: object) -> CondorSearch:
    search = CondorSearch(pool, pool.home / name, code=TRIAL, **options)
    data = search.directory / "data.bin"
    data.write_bytes(os.urandom(SIZE))
    os.chown(data, UID, UID)
    return search


STEPS = 30


def fetched(search: CondorSearch) -> int:
    """Return how often a host fetched the data."""
    outputs = (search.directory / "output").glob("*.out")
    return sum(path.read_text().count("of data for this host") for path in outputs)


def test_a_search(pool: CondorPool) -> None:
    search = make_search(pool, "search", trials=8, steps=STEPS, hold_at=STEPS // 2)
    controller = search.start("--queue-ahead=1")

    def reports_while_it_runs() -> bool:
        folders = list((search.directory / "jobs").glob("[0-9]*"))
        began = [folder for folder in folders if (folder / "reports.csv").exists()]
        return any(not (folder / "result.json").exists() for folder in began)

    try:
        search.wait_running(4)
        until(reports_while_it_runs, 60, 0.05)
        controller.end()
    finally:
        search.stop()
    search.assert_complete()
    assert {run.host for run in search.runs()} == {"node001", "node002"}
    assert fetched(search) == 2
    for number in range(1, 9):
        output = (search.directory / "output" / f"{number:08d}.out").read_text()
        assert [line for line in output.splitlines() if line.startswith("step")] == [
            f"step {step}" for step in range(STEPS)
        ]
    for node in pool.hosts[1:]:
        kept = node.run("sh", "-c", f"ls -A {pool.home}/.cache/spearmint; ls -A {HIDDEN}")
        assert kept.stdout.count("data-") == 1, kept.stdout


def test_jobs_of_several_trials(pool: CondorPool) -> None:
    """A controller is killed, then a job removed: what had ended stays."""
    config = CONFIG_OF_BATCHES
    search = CondorSearch(
        pool, pool.home / "batch", trials=8, steps=40, hold_at=25, config=config, code=BATCHES
    )
    try:
        controller = search.start()
        search.wait_running(4)
        controller.kill()
        controller = search.start()
        for number in (2, 4):
            controller.wait_for(rf"trial {number}: 0\.", release=False)
        job = next(run.job for run in search.runs() if run.trial == 1)
        sent = search.directory / "batches/00000001/files/00000001/files/step"
        until(lambda: int(text_of(sent) or 0) >= 20, 60, 0.1)
        pool.checked("condor_rm", job, uid=UID)
        controller.wait_for(r"trial 1 was lost", release=False)
        assert not re.search(r"trial [24] was lost", controller.end())
        assert_complete_in_batches(search)
    finally:
        search.stop()
    again = next(run for run in search.runs() if run.trial == 1 and run.job != job)
    assert again.first >= 20, "it continued from its checkpoint"


def test_a_host_is_lost(pool: CondorPool) -> None:
    search = make_search(pool, "lost", trials=4, steps=20, hold_at=3)
    controller = search.start("-l", "job_lease_duration=20")
    try:
        lost = search.wait_running(4, step=3)[0]  # as far as the files that came back show
        search.node(lost).kill()
        search.release()

        def is_again() -> bool:
            same = [run for run in search.runs() if run.trial == lost.trial]
            return any(run.first >= 3 and run.host != lost.host for run in same)

        until(is_again, 300, 0.3)  # the pool offers jobs to the lost host, too
        controller.end()
        search.assert_complete(lost=[lost.host])
    finally:
        search.stop()
        pool.heal()


_TASKS = """
import json, sys
from pathlib import Path

import spearmint

DATA = Path(__file__).with_name("data.txt")

def work(n):
    import socket
    return [n, socket.gethostname() != "master", DATA.exists()]

if __name__ == "__main__":
    folder = Path(sys.argv[1]) / "tasks"
    with spearmint.executor("HTCONDOR", directory=folder, gpus=1, polling_s=1) as executor:
        print(json.dumps(list(executor.map(work, range(3)))))
"""


def test_functions_are_jobs(pool: CondorPool) -> None:
    root = pool.home / "executor"
    root.mkdir()
    (root / "script.py").write_text(_TASKS)
    (root / "data.txt").touch()
    for path in (root, *root.iterdir()):
        os.chown(path, UID, UID)
    said = pool.checked(sys.executable, str(root / "script.py"), str(root), uid=UID)
    assert json.loads(said) == [[n, True, False] for n in range(3)]
