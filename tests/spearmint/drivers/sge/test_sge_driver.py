"""The Grid Engine parts of its driver: names, script, messages, hosts, accounting."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from sge_jobs import AccountingRecord, JobSpec, SubmitError
from spearmint.drivers import DriverSettings, QueueJobState
from spearmint.drivers import queue_listing as listing_module
from spearmint.drivers.sge import GridEngine, SgeDriver
from spearmint.drivers.sge.ends import ended_run
from spearmint.errors import DriverError, DriverUnreachable, InputError
from spearmint.resources import Resources
from tests.spearmint.drivers.sge.fake_cell import FakeCell


@pytest.fixture
def cell(tmp_path: Path) -> FakeCell:
    cell = FakeCell(DriverSettings(directory=tmp_path))
    cell.queue.starts_jobs = False
    return cell


@pytest.fixture
def make(
    cell: FakeCell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., SgeDriver]:
    monkeypatch.setattr(listing_module, "_LOAD", 0)

    def make(**need: object) -> SgeDriver:
        settings = DriverSettings(directory=tmp_path, polling_s=0.0, resources=Resources(**need))
        return SgeDriver(settings, queue=GridEngine(settings, queue=cell))

    return make


def test_a_job_is_found_again_by_its_name(make, cell, request_of) -> None:
    job = make().submit(request_of(7, "x" * 300))
    make().submit(request_of(8, "x" * 300))
    assert make().adopt(request_of(7).folder) == job
    names = {spec.name for spec in cell.specs.values()}
    assert len(names) == 2
    assert all(len(name) < 120 for name in names), "the token at the end is not cut off"


def test_a_refused_job_is_reported_in_qsub_s_words(make, cell, request_of, monkeypatch) -> None:
    def refuse(spec: JobSpec, *, inherit: object) -> str:
        raise SubmitError('unknown resource "gpu"', "sge-jobs setup")

    monkeypatch.setattr(cell, "submit", refuse)
    with pytest.raises(DriverError, match="gpu") as error:
        make().submit(request_of(1))
    assert not isinstance(error.value, DriverUnreachable)
    assert error.value.fix == "sge-jobs setup"


def test_what_grid_engine_could_not_run_is_refused_in_the_preview(make, request_of) -> None:
    with pytest.raises(InputError, match="slots"):
        make(slots=0).preview(request_of(1))


def test_notices_name_grid_engine_s_commands_and_letters(make, cell, request_of) -> None:
    driver = make()
    job = driver.submit(request_of(1))
    for state, facts in {
        QueueJobState.HELD: ["(hqw)", "qrls 1"],
        QueueJobState.SUSPENDED: ["(s)", "qmod -usj 1"],
        QueueJobState.ERROR: ["(Eqw)", "can't chdir to /gone\n", "qmod -cj 1", "qdel 1"],
    }.items():
        cell.queue.set_state("job.1", state, reason="can't chdir to /gone")
        driver.poll([job])
        (notice,) = driver.notices()
        assert notice.startswith("job 1 (jobs/00000001) ")
        assert all(fact in notice for fact in facts)


def test_the_script_has_what_the_trial_needs(make, request_of, tmp_path: Path) -> None:
    driver = make(
        gpus=2,
        slots=4,
        walltime_s=3600.0,
        memory="8G",
        queue="gpu.q",
        project="net",
        requests=("arch=lx-amd64",),
        options=("-m", "e"),
        environment=(("DATA", "/my data"),),
        modules=("cuda/12",),
        venv=tmp_path / "en v",
        setup=("ulimit -c 0",),
    )
    text = driver.preview(request_of(3))
    line, _, script = text.partition(" <<'END'\n")
    argv = shlex.split(line)
    assert "gpu=2" in " ".join(argv)
    for words in (["-pe", "smp", "4"], ["-q", "gpu.q"], ["-P", "net"], ["-m", "e"]):
        at = argv.index(words[0])
        assert argv[at : at + len(words)] == words
    joined = " ".join(argv)
    assert "h_rt=" in joined
    assert "mem_free=8G" in joined
    for part in ("DATA='/my data'", "OMP_NUM_THREADS=4", "module load cuda/12", "ulimit -c 0"):
        assert part in script
    assert "SPEARMINT_RERUN_EXIT_CODE=99" in script
    assert f"'{tmp_path}/en v/bin/python' -P -m spearmint.trial.runner" in script


def test_gpus_on_several_hosts_need_a_cell_that_counts_them_for_each_slot(
    make, cell, request_of
) -> None:
    need = {"gpus": 2, "nodes": 2, "slots": 1, "parallel_environment": "spread"}
    with pytest.raises(InputError, match=r"share of a GPU: --gpus=0\.5"):
        make(**{**need, "gpus": 0.5}).preview(request_of(1))
    with pytest.raises(InputError, match="counts gpu for each job") as error:
        make(**need).preview(request_of(1))
    assert "sed '/^gpu /s/ JOB / YES /' > complexes && qconf -Mc complexes" in error.value.fix
    make(**{**need, "gpus": 0}).preview(request_of(1))
    for kind in ("YES", ""):  # empty: the cell does not say
        cell.counts = kind
        assert "gpu=2" in make(**need).preview(request_of(1))


@pytest.mark.parametrize("limit", ["h_rt=3600", "s_rt=60"])
def test_a_job_with_a_time_limit_runs_one_trial(tmp_path, cell, request_of, limit) -> None:
    settings = DriverSettings(
        directory=tmp_path, queues_ahead=True, resources=Resources(requests=(limit,))
    )
    driver = SgeDriver(settings, queue=GridEngine(settings, queue=cell))
    assert "spearmint.trial.runner" in driver.preview(request_of(1))


def test_capacity_is_what_hosts_that_answer_can_hold(make) -> None:
    assert make(gpus=1).capacity() == 2 + 1
    assert make(gpus=0).capacity() == 4 + 1


def record(**changes: object) -> AccountingRecord:
    base = {"id": "1", "name": "x", "owner": "me", "host": "node001", "failed": 0, "exit_status": 0}
    return AccountingRecord(**{**base, **changes})


def test_accounting_in_neutral_terms() -> None:
    killed = ended_run(record(failed=100, exit_status=137), None)
    assert (killed.signal, killed.host) == (9, "node001")
    assert ended_run(record(exit_status=3), None).exit_status == 3
    assert ended_run(record(exit_status=3), None).signal == 0
    failed = ended_run(record(failed=26, failed_text="opening output file"), None)
    assert failed.failure == "26 opening output file"
    limit = record(failed=37, exit_status=137)
    assert ended_run(limit, 60.0).timed_out
    assert not ended_run(limit, None).timed_out
    assert re.findall(r"h_\w+", ended_run(limit, None).limit) == ["h_rt", "h_cpu", "h_vmem"]
    assert ended_run(record(wallclock_s=61.0, ended=9.0), 60.0).seconds == 61.0
