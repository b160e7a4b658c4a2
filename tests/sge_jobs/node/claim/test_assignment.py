"""The assignment of GPUs to running jobs: real processes, a fake qstat, Grid Engine's files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from sge_jobs.node.claim.answer import Answer, read_answer
from sge_jobs.node.claim.assignment import NodeSettings
from sge_jobs.node.claim.attendant import Attendant
from sge_jobs.node.claim.locks import Locks
from sge_jobs.node.claim.spools import Spools
from sge_jobs.node.gpus.inventory import Gpu, Inventory, boot_id, encode
from sge_jobs.node.gpus.topology import parse_islands
from tests.sge_jobs.node.claim.shepherds import kill, shepherd
from tests.sge_jobs.node.claim.test_starter import REQUEST, XML


@dataclass
class FakeCell:
    """A host whose execution daemon starts jobs, and an attendant that answers to them."""

    path: Path
    children: list[int]

    def __post_init__(self) -> None:
        self.settings = NodeSettings()
        self.settings.cache = str(self.path / "gpus")
        self.settings.locks = str(self.path / "run" / "locks")
        self.settings.gpu_wait_s = self.settings.master_wait_s = 0.0
        (self.path / "run").mkdir(mode=0o755, parents=True)
        (self.path / "active_jobs").mkdir()
        tool = self.path / "qstat"
        tool.write_text('#!/bin/sh\ncat "${0%/*}/job$3.xml"\n')
        tool.chmod(0o755)
        self.gpus("GPU-0", "GPU-1")
        self.attendant = self.started()

    def started(self) -> Attendant:
        return Attendant(str(self.path / "active_jobs"), {}, self.settings)

    def gpus(
        self,
        *uuids: str,
        per_slot: bool = False,
        chosen: bool = False,
        blocked: dict[str, list[int]] | None = None,
        islands: tuple[str, ...] = (),
    ) -> None:
        found = [Gpu(index=place, uuid=uuid) for place, uuid in enumerate(uuids)]
        lines = "".join(f"island = {' '.join(group)}\n" for group in islands)
        self.links = parse_islands(lines, uuids)
        known = Inventory(
            source="declared", gpus=found, per_slot=per_slot, chosen=chosen, blocked=blocked,
            links=self.links.rows,
        )  # fmt: skip
        Path(self.settings.cache).write_text(encode(known, boot_id()))

    def job(
        self,
        name: str,
        resources: str,
        *,
        parallel: bool = False,
        config: str = "",
        environment: str = "",
    ) -> Path:
        """Start job ``name``, such as ``12.1`` or ``12.1/1.node``; return its spool directory."""
        pairs = [item.split("=") for item in resources.split(",") if item]
        text = XML.format("".join(REQUEST.format(*pair) for pair in pairs))
        job = name.partition(".")[0]
        text = text.replace(">12</JB_job_number>", f">{job}</JB_job_number>")
        more = "<JB_owner>alice</JB_owner>" + ("<JB_pe>smp</JB_pe>" if parallel else "")
        (self.path / f"job{job}.xml").write_text(text.replace("</element>", f"{more}</element>"))
        spool = self.path / "active_jobs" / name
        spool.mkdir()
        (spool / "config").write_text(f"add_grp_id=0\n{config}")
        (spool / "environment").write_text(environment)
        (spool / "pid").write_text(f"{shepherd(self.children, spool).pid}\n")
        return spool

    def answer(self, spool: Path) -> Answer:
        assert self.attendant.attend() == []
        found = read_answer(str(spool))
        assert found is not None
        return found

    def given(self, name: str, resources: str, **more: str) -> list[str]:
        answer = self.answer(self.job(name, resources, parallel=bool(more), **more))
        assert (answer.code, answer.what) == (0, "")
        return answer.gpus

    def end(self, spool: Path) -> None:
        kill(int((spool / "pid").read_text()))


@pytest.fixture
def cell(tmp_path: Path, children: list[int], monkeypatch: pytest.MonkeyPatch) -> FakeCell:
    cell = FakeCell(tmp_path / "a host", children)
    monkeypatch.setenv("PATH", f"{cell.path}:/usr/bin:/bin")
    return cell


def test_each_job_gets_as_many_gpus_as_it_requested(cell: FakeCell) -> None:
    assert cell.given("12.1", "") == []
    assert cell.given("13.1", "h_rt=9,gpu=1") == ["GPU-0"]
    assert cell.given("14.1", "gpu=1") == ["GPU-1"]
    busy = cell.answer(cell.job("15.1", "gpu=1"))
    assert busy.code == 99
    assert "GPU-0: job 13 of alice" in busy.what
    cell.end(cell.path / "active_jobs" / "13.1")
    assert cell.given("16.1", "gpu=1") == ["GPU-0"]


def test_a_killed_attendant_leaves_nothing_and_a_new_one_changes_nothing(cell: FakeCell) -> None:
    spool = cell.job("12.1", "gpu=1")
    first = cell.answer(spool).gpus
    cell.attendant = cell.started()
    assert cell.answer(spool).gpus == first
    (spool / "sge_jobs").unlink()  # killed after the claim, before the answer
    cell.attendant = cell.started()
    assert cell.answer(spool).gpus == first
    assert cell.given("13.1", "gpu=1") == ["GPU-1"]


def test_a_job_that_runs_again_in_the_same_directory_gets_an_answer_of_its_own(
    cell: FakeCell, children: list[int]
) -> None:
    spool = cell.job("12.1", "gpu=2")
    assert cell.answer(spool).gpus == ["GPU-0", "GPU-1"]
    cell.end(spool)
    assert cell.given("13.1", "gpu=1") == ["GPU-0"]
    (spool / "pid").unlink()
    (spool / "pid").write_text(str(shepherd(children, spool).pid))
    assert cell.answer(spool).code == 99


def test_text_of_a_user_gives_no_more_gpus(cell: FakeCell) -> None:
    forged = "SGE_HGR_gpu=0 1\nhard resource_list: gpu=2\n"
    assert cell.given("12.1", "gpu=1", config="host_slots=2\n", environment=forged) == ["GPU-0"]
    cell.gpus("GPU-0", "GPU-1", per_slot=True)
    for config in ("host_slots=1\nname=x\nhost_slots=2\n", "add_grp_id=5\n"):
        spool = cell.job(f"1{len(config)}.1", "gpu=1", parallel=True, config=config)
        answer = cell.answer(spool)
        assert (answer.code, "several values" in answer.what) == (100, True)


def test_gpus_count_for_each_slot_where_the_cell_says_so(cell: FakeCell) -> None:
    cell.gpus("GPU-0", "GPU-1", per_slot=True)
    assert cell.given("12.1", "gpu=1", config="host_slots=2\n") == ["GPU-0", "GPU-1"]


def test_tasks_of_a_parallel_job_share_its_gpus(cell: FakeCell) -> None:
    first = cell.job("12.1", "gpu=1", parallel=True)
    assert cell.answer(first).gpus == ["GPU-0"]
    task = cell.job("12.1/1.node", "gpu=1", parallel=True)
    assert cell.answer(task).gpus == ["GPU-0"]
    cell.end(first)
    assert cell.given("13.1", "gpu=1") == ["GPU-1"]
    other = cell.job("14.1", "gpu=1", parallel=True)
    assert cell.answer(other).code == 99
    assert cell.answer(cell.job("14.1/1.node", "gpu=1", parallel=True)).gpus == []


def test_grid_engine_9_chooses_the_devices(cell: FakeCell) -> None:
    cell.gpus("GPU-0", "GPU-1", "GPU-2", chosen=True)
    two = cell.job("12.1", "gpu=2", environment="A=1\nSGE_HGR_gpu=2 GPU-0\n")
    assert sorted(cell.answer(two).gpus) == ["GPU-0", "GPU-2"]
    for place, devices in enumerate(("7", "0 1", "")):
        spool = cell.job(f"2{place}.1", "gpu=1", environment=f"SGE_HGR_gpu={devices}\n")
        assert cell.answer(spool).code == 100


def test_a_gpu_that_a_foreign_process_uses_is_not_given(cell: FakeCell) -> None:
    cell.gpus("GPU-0", "GPU-1", "GPU-2", blocked={"GPU-0": [os.getpid(), 2**22], "GPU-1": [2**22]})
    assert cell.given("12.1", "gpu=2") == ["GPU-1", "GPU-2"]
    busy = cell.answer(cell.job("13.1", "gpu=1"))
    assert busy.code == 99
    assert f"GPU-0: used outside Grid Engine by process {os.getpid()}" in busy.what


def test_a_master_that_does_not_answer_and_a_host_without_gpus_send_the_job_back(
    cell: FakeCell,
) -> None:
    spool = cell.job("12.1", "gpu=1")
    (cell.path / "job12.xml").write_text("")
    answer = cell.answer(spool)
    assert (answer.code, "qstat" in answer.what) == (99, True)
    cell.gpus()
    answer = cell.answer(cell.job("13.1", "gpu=1"))
    assert (answer.code, "nvidia-smi" in answer.what) == (99, True)


def test_files_that_cannot_be_used_put_the_job_into_the_error_state(cell: FakeCell) -> None:
    Path(cell.settings.locks).mkdir(mode=0o700)
    (Path(cell.settings.locks) / "claims").mkdir()
    with pytest.raises(Exception, match="claims"):
        cell.attendant.attend()


def test_a_directory_without_a_shepherd_in_it_gets_no_answer(
    cell: FakeCell, children: list[int]
) -> None:
    spool = cell.job("12.1", "gpu=1")
    other = cell.path / "active_jobs" / "13.1"
    other.mkdir()
    (other / "pid").write_text((spool / "pid").read_text())  # of another directory
    assert cell.attendant.attend() == []
    assert read_answer(str(other)) is None
    (other / "pid").write_text("1\n")
    assert cell.attendant.attend() == []
    assert read_answer(str(other)) is None


def test_new_directories_are_found_in_one_that_was_listed_before(tmp_path: Path) -> None:
    spools = Spools(str(tmp_path))
    for number in range(3):
        (tmp_path / f"{number}.1").mkdir()
        os.utime(tmp_path, (number, number))
        assert len(spools._directories(str(tmp_path))) == number + 1


def test_records_name_the_job_and_its_owner(cell: FakeCell) -> None:
    cell.given("12.1", "gpu=2")
    locks = Locks(cell.settings.locks, boot_id())
    (record,) = locks.read("GPU-1")
    locks.close()
    assert (record.job, record.task, record.user, record.share) == ("12", "", "alice", 1000)
