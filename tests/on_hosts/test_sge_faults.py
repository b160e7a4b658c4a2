"""Faults of jobs and daemons during a search: it completes without manual cleanup."""

from __future__ import annotations

import re
import signal
import time

import pytest

from tests.on_hosts.cell_commands import listed
from tests.on_hosts.conftest import MakeSearch
from tests.on_hosts.searches import assert_all_free
from tests.testbed.cell import UID, Cell
from tests.waiting import until

pytestmark = pytest.mark.sge


# Jobs


def test_a_deleted_job_runs_again(cell: Cell, make_search: MakeSearch) -> None:
    search = make_search()
    controller = search.start()
    victim = search.wait_running()[-1]
    cell.checked("qdel", victim.job, uid=UID)
    until(lambda: victim.job not in listed(cell), 60, 0.2)
    output = controller.end()
    assert re.search(rf"trial {victim.trial} .*signal 9", output)
    search.assert_complete()


def test_a_killed_trainer_runs_again(make_search: MakeSearch) -> None:
    search = make_search()
    controller = search.start("--queue-ahead=3")
    victim = search.wait_running()[-1]
    search.trainer(victim).kill()
    output = controller.end()
    assert re.search(rf"trial {victim.trial} .*signal 9", output)
    search.assert_complete()


def test_a_trial_that_reaches_the_walltime_timed_out(make_search: MakeSearch) -> None:
    search = make_search()
    controller = search.start("--walltime=1s", "--max-finished-jobs=1", "--max-broken=1")
    output = controller.end(status=1)
    assert re.search(r"trial \d+: broken: .*walltime.*\b1\.0 s", output)
    assert all(trial["lost"] == 0 for trial in search.trials())


def test_a_killed_shepherd_harms_no_trial(make_search: MakeSearch) -> None:
    search = make_search()
    controller = search.start()
    victim = search.wait_running()[-1]
    search.shepherd(victim).kill()
    controller.end()
    search.assert_complete()


def test_a_held_job_waits_and_the_others_go_on(cell: Cell, make_search: MakeSearch) -> None:
    search = make_search()
    controller = search.start("--max-concurrent=8")
    search.wait_running()
    until(lambda: search.jobs_in("qw"))
    held = search.jobs_in("qw")[-1]
    cell.checked("qhold", held, uid=UID)
    cure = controller.wait_for(rf"job {held} .*\(hqw\).*(qrls {held})")[1]
    until(
        lambda: search.jobs_in("hqw") and len(search.runs()) == search.n_trials - 1,
        60,
        0.2,
        progress=lambda: len(search.runs()),
    )
    cell.checked(*cure.split(), uid=UID)
    controller.end()
    search.assert_complete()
    assert len(search.runs()) == search.n_trials


def test_a_suspended_trial_keeps_its_gpu_and_goes_on(cell: Cell, make_search: MakeSearch) -> None:
    search = make_search()
    controller = search.start()
    victim = search.wait_running()[-1]
    job = victim.job
    until(lambda: job in search.jobs_in("r"), 60, 0.1)
    cell.checked("qmod", "-sj", job, uid=UID)
    cure = controller.wait_for(rf"job {job} .*\(s\).*(qmod -usj {job})", release=False)[1]
    search.release()
    until(
        lambda: len(search.runs()) == search.n_trials,
        60,
        0.2,
        progress=lambda: len(search.runs()),
    )
    # The last trial began when two others on its GPU had ended, each as long as the suspended one.
    assert victim.trial in {run.trial for run in search.running()}, "it was never suspended"
    cell.checked(*cure.split(), uid=UID)
    controller.end()
    search.assert_complete()
    assert len(search.runs()) == search.n_trials


def test_a_job_in_error_state_is_told_with_its_reason_and_cure(
    cell: Cell, make_search: MakeSearch
) -> None:
    search = make_search(trials=3)
    controller = search.start("--submit-option=-wd", "--submit-option=/not-there")
    told = re.compile(r"job (\d+) .*\(Eqw\): .*/not-there.*\n.*(qmod -cj \1)")
    controller.wait_for(told.pattern)
    for node in cell.hosts:
        node.run("mkdir", "/not-there")
    cured: set[str] = set()

    def cure() -> bool:
        # A trial that finds no place on a host without such failures is submitted after the fix.
        for job, command in told.findall(controller.output):
            if job not in cured:
                answer = cell.run(*command.split(), uid=UID).stdout  # with status 1
                assert "cleared error state" in answer
                cured.add(job)
        return controller.has_ended

    until(cure, 90, 0.2, progress=lambda: (controller.output, search.recorded()))
    controller.end()
    search.assert_complete()


def test_a_preempted_trial_goes_on_from_its_checkpoint(cell: Cell, make_search: MakeSearch) -> None:
    # One of the 6 GPUs is free, so the trial restarts there before its old run has ended.
    search = make_search(trials=5, steps=20, hold_at=11)
    controller = search.start("--queue-ahead=3", "--max-retries=0")
    victim = search.wait_running(5, step=11)[0]
    cell.checked("qmod", "-rj", victim.job)
    until(lambda: sum(run.trial == victim.trial for run in search.runs()) == 2, 60, 0.2)
    controller.end()
    search.assert_complete()
    before, after = [run for run in search.runs() if run.trial == victim.trial]
    assert before.value is None
    assert before.seen < after.began
    assert after.first > 10
    assert not any(trial["lost"] for trial in search.trials())


# Daemons and the command


def test_a_killed_execution_daemon_harms_no_trial(cell: Cell, make_search: MakeSearch) -> None:
    search = make_search()
    controller = search.start()
    node = search.node(search.wait_running()[-1])
    cell.kill("sge_execd", node)
    search.release()
    time.sleep(5)
    cell.start_execd(node)
    controller.end()
    search.assert_complete()
    assert len(search.runs()) == search.n_trials


@pytest.mark.parametrize("ahead", [0, 3])
def test_a_command_killed_again_and_again(make_search: MakeSearch, ahead: int) -> None:
    search = make_search(trials=18, steps=50, hold_from=13)  # it cannot end before the last kill
    for moment_s in (0.1, 0.4, 0.8, 1.3, 1.9):
        controller = search.start(f"--queue-ahead={ahead}")
        controller.wait_for(r"driver SGE\b.*\b6\b", release=False)
        time.sleep(moment_s)
        controller.kill()
    search.start(f"--queue-ahead={ahead}").end()
    search.assert_complete()
    assert len(search.runs()) == search.n_trials, "an adopted trial was rerun"


def test_ctrl_c_leaves_the_jobs_and_the_same_command_adopts_them(make_search: MakeSearch) -> None:
    search = make_search(trials=6)
    controller = search.start()
    search.wait_running()
    controller.send(signal.SIGINT)
    output = controller.end(status=128 + signal.SIGINT, release=False)
    assert re.search(r"\b6 trials .*\bqueue\b", output)
    assert re.search(r"\b0 \w+ 6 trials\b", output)
    until(lambda: len(search.jobs_in("r")) == 6, 60, 0.1)
    search.start().end()
    search.assert_complete()
    assert len(search.runs()) == search.n_trials, "an adopted trial was rerun"


def test_cancel_ends_the_jobs_and_the_next_run_starts_them_again(
    cell: Cell, make_search: MakeSearch
) -> None:
    search = make_search(trials=8)
    controller = search.start("--queue-ahead=2")
    search.wait_running()
    until(lambda: search.jobs_in("qw"))
    controller.kill()
    ended = search.start("--cancel").end(release=False)
    assert " 8 trials" in ended
    assert_all_free(cell)
    search.start().end()
    search.assert_complete()


def test_cleanup_ends_the_jobs(cell: Cell, make_search: MakeSearch) -> None:
    search = make_search()
    controller = search.start()
    search.wait_running()
    controller.kill()
    search.command("cleanup", "--yes")
    assert_all_free(cell)
    assert all(run.value is None for run in search.runs())
    names = {path.name for path in search.directory.iterdir()}
    assert names - {"__pycache__"} == {"config.pb", "trial.py"}


def test_a_killed_master_harms_no_trial(cell: Cell, make_search: MakeSearch) -> None:
    search = make_search()
    controller = search.start("--queue-ahead=3")
    search.wait_running()
    cell.kill("sge_qmaster")
    search.release()
    time.sleep(10)
    cell.start_master()
    controller.end()
    search.assert_complete()
    assert len(search.runs()) == search.n_trials, "a trial was rerun"
