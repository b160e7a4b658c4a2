"""Searches and arrays without faults: all complete, on every host, each on its own GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.on_hosts.conftest import MakeSearch
from tests.on_hosts.searches import CONFIG, Use, assert_all_free, assert_exclusive
from tests.testbed.cell import REPOSITORY, Cell

pytestmark = pytest.mark.sge

# The example with fewer epochs; each trial writes records like those of the other tests.
_RECORDED = """
def main(job_id, params, _main=main):
    import json, os, socket, time
    from pathlib import Path
    with (Path({runs!r}) / str(job_id)).open("w") as record:
        begun = dict(trial=job_id, job=os.environ["JOB_ID"], first=0,
                     region=os.environ["SPEARMINT_REGION"],
                     host=socket.gethostname(), gpus=os.environ["CUDA_VISIBLE_DEVICES"])
        print(json.dumps(dict(time=time.time(), **begun)), file=record, flush=True)
        value = _main(job_id, params)
        print(json.dumps(dict(time=time.time(), value=value)), file=record)
    return value
"""


def test_a_search_on_the_digits(make_search: MakeSearch) -> None:
    example = REPOSITORY / "examples/digits"
    code = (example / "digits.py").read_text().replace("EPOCHS = 30", "EPOCHS = 2")
    search = make_search(
        trials=24,
        name="digits",
        config=(example / "config.pb").read_text().replace("{", "{{").replace("}", "}}"),
        code=code.replace("{", "{{").replace("}", "}}") + _RECORDED,
    )
    output = search.start("--method=GPEIOptChooser").end()
    assert re.search(r"\b24\b.*\(0 broken\)", output)
    search.assert_complete()
    assert {run.host for run in search.runs()} == set(search.cell.names)


def test_a_search_of_three_regions(make_search: MakeSearch) -> None:
    regions = "".join(f'region: "{name}"\n' for name in ("us", "jp", "5-e.x"))
    search = make_search(trials=4, regions=3, steps=10, config=CONFIG + regions)
    search.start().end()
    search.assert_complete()
    assert {run.region for run in search.runs()} == {"us", "jp", "5-e.x"}


def test_pilots_fork_their_trials(make_search: MakeSearch) -> None:
    make_search(trials=100, steps=5).assert_pilots_fork()


SCRIPT = """#!/bin/bash
began=$(date +%s.%N)
sleep 0.$((RANDOM % 5 + 2))
echo "$(hostname) $CUDA_VISIBLE_DEVICES $began $(date +%s.%N)" > {folder}/$JOB_ID.$SGE_TASK_ID
"""


def recorded(folder: Path) -> Iterator[tuple[str, list[Use]]]:
    """Yield the host and the GPU uses of each task."""
    for path in folder.iterdir():
        host, gpus, began, ended = path.read_text().split()
        yield host, [Use(gpu, float(began), float(ended)) for gpu in gpus.split(",")]


@pytest.fixture
def folder(cell: Cell, request: pytest.FixtureRequest) -> Path:
    path = cell.shared / request.node.name
    path.mkdir()
    path.chmod(0o777)
    return path


def test_an_array_of_41_tasks(cell: Cell, folder: Path) -> None:
    cell.submit(SCRIPT.format(folder=folder), "-t", "1-41", "-l", "gpu=1")
    cell.wait_idle()
    tasks = list(recorded(folder))
    assert len(tasks) == 41
    assert {host for host, _ in tasks} == set(cell.names)
    assert all(len(used) == 1 for _, used in tasks)
    assert_exclusive(use for _, used in tasks for use in used)
    assert_all_free(cell)


def test_arrays_of_one_and_of_two_gpus_together(cell: Cell, folder: Path) -> None:
    for count in (1, 2, 1):
        cell.submit(SCRIPT.format(folder=folder), "-t", "1-8", "-l", f"gpu={count}")
    cell.wait_idle()
    tasks = list(recorded(folder))
    assert sorted(len(used) for _, used in tasks) == [1] * 16 + [2] * 8
    assert_exclusive(use for _, used in tasks for use in used)
    assert_all_free(cell)
