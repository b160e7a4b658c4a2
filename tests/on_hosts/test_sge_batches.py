"""Jobs of several trials on Grid Engine: kills of controllers, jobs and processes."""

from __future__ import annotations

import re

import pytest

from tests.on_hosts.batches import BATCHES, CONFIG_OF_BATCHES, assert_complete_in_batches
from tests.on_hosts.cell_commands import listed
from tests.on_hosts.conftest import MakeSearch
from tests.on_hosts.searches import SgeSearch
from tests.testbed.cell import UID, Cell
from tests.waiting import until

pytestmark = pytest.mark.sge


def make(make_search: MakeSearch, **options: int) -> SgeSearch:
    return make_search(config=CONFIG_OF_BATCHES, code=BATCHES, **options)


def test_four_trials_share_a_job_and_its_gpu(make_search: MakeSearch) -> None:
    search = make(make_search, trials=24, steps=10)
    search.start().end()
    assert_complete_in_batches(search)
    by_job: dict[str, set[int]] = {}
    for run in search.runs():
        by_job.setdefault(run.job, set()).add(run.trial)
    assert sorted(map(len, by_job.values())) == [4] * 6
    shown = search.command("report")
    assert shown


def test_a_killed_controller_loses_nothing_and_runs_nothing_twice(make_search: MakeSearch) -> None:
    search = make(make_search, trials=16, hold_at=6)
    for n in range(2):
        controller = search.start()
        search.wait_running(4 + n)
        controller.kill()
    search.start("--queue-ahead=2").end()
    assert_complete_in_batches(search)
    assert len(search.runs()) == 16


def test_what_a_deleted_job_had_not_finished_is_retried_alone(
    cell: Cell, make_search: MakeSearch
) -> None:
    search = make(make_search, trials=4, steps=40, hold_at=25)
    controller = search.start()
    search.wait_running(4)
    for number in (2, 4):
        controller.wait_for(rf"trial {number}: 0\.", release=False)
    (job,) = {run.job for run in search.runs()}
    cell.checked("qdel", job, uid=UID)
    until(lambda: job not in listed(cell), 60, 0.2)
    output = controller.end()
    assert len(re.findall(r"trial [13] was lost .*signal 9", output)) == 2
    assert not re.search(r"trial [24] was lost", output)
    assert_complete_in_batches(search)
    later = [run for run in search.runs() if run.job != job]
    assert sorted(run.trial for run in later) == [1, 3]
    assert len({run.job for run in later}) == 2
    assert all(run.first > 0 for run in later), "they resumed from their checkpoints"


def test_a_stopped_trial_leaves_the_others_in_their_job(make_search: MakeSearch) -> None:
    search = make(make_search, trials=3, hold_at=2)
    controller = search.start()
    search.wait_running(3)
    search.cell.checked("spearmint", "stop", str(search.directory), "1", uid=UID)
    controller.wait_for(r"trial 1: broken", release=False)
    controller.end()
    states = {trial["id"]: trial["state"] for trial in search.trials()}
    assert (states[1], states[2], states[3]) == ("broken", "complete", "complete")
    assert len([run for run in search.runs() if run.trial in (2, 3)]) == 2
    search.assert_all_free((), 120)
