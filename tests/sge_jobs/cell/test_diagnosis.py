"""Each possible problem of a cell is found and has a fix."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sge_jobs.cell.desired import FAULT_COMPLEX, GPU_COMPLEX, SHARE_COMPLEX, STATE_COMPLEX
from sge_jobs.cell.diagnosis import Machine, cell_problems, manager_problems, name_problems
from sge_jobs.cell.problem import Problem
from sge_jobs.cell.qconf_text import CellConfig
from sge_jobs.cli.gpus import gpu_rows
from sge_jobs.cli.setup import sensed_gpus
from sge_jobs.gpu_state import GpuStatus, GpuUse, Intruder, decode, encode
from sge_jobs.model import Host, QueueInstance

MACHINE = Machine(
    name="node1",
    addresses=("10.0.0.1",),
    hosts_file="127.0.0.1 localhost\n10.0.0.1 node1 n1\n",
    uid=1000,
)
FREE = (GpuUse(index=0, uuid="GPU-a"), GpuUse(index=1, uuid="GPU-b"))
HOST = Host(
    name="node1",
    reachable=True,
    cores=8,
    slots=4,
    load=0.1,
    gpus=2,
    gpu_state=encode(FREE),
    queues=(QueueInstance(name="all.q", slots=4),),
)
NEWER = f"{SHARE_COMPLEX}\n{FAULT_COMPLEX}\n"
CELL = CellConfig(
    complexes=f"{GPU_COMPLEX}\n{STATE_COMPLEX}\n{NEWER}",
    callers=("node1",),
    hosts={"node1": {"complex_values": "gpu=2"}},
    queues={"all.q": {"starter_method": "/x/sge_jobs/node/gpu-starter"}},
    configuration={"min_uid": "1000"},
)


def problems(
    cell: CellConfig = CELL,
    host: Host | None = HOST,
    machine: Machine = MACHINE,
    submit_hosts: tuple[str, ...] = ("node1.example.org",),
) -> list[Problem]:
    found = cell_problems(
        cell,
        [host] if host else [],
        queue="all.q",
        submit_hosts=submit_hosts,
        machine=machine,
    )
    return [*name_problems(machine), *found]


def with_gpu(**changed: object) -> Host:
    use = replace(FREE[0], **changed)  # type: ignore[arg-type]
    return replace(HOST, gpu_state=encode((use, FREE[1])))


def with_state(state: str) -> Host:
    return replace(HOST, queues=(QueueInstance(name="all.q", slots=4, state=state),))


def test_a_good_cell_has_no_problems() -> None:
    assert problems() == []


def test_root_is_here_as_the_manager_and_need_not_submit() -> None:
    assert problems(machine=replace(MACHINE, uid=0)) == []


@pytest.mark.parametrize(
    ("found", "what", "fix"),
    [
        (
            problems(machine=replace(MACHINE, addresses=("127.0.1.1",))),
            "127.0.1.1",
            "ADDRESS node1",
        ),
        (problems(machine=replace(MACHINE, addresses=())), "node1", "/etc/hosts: ADDRESS node1"),
        (
            problems(machine=replace(MACHINE, hosts_file="10.0.0.1 n1 node1")),
            "10.0.0.1",
            "10.0.0.1 node1 n1",
        ),
        (problems(submit_hosts=("other",)), "node1", "qconf -as node1"),
        (problems(machine=replace(MACHINE, uid=999)), "999", "min_uid: qconf -mconf"),
        (problems(host=None), "execution host", "qconf -ae HOST"),
        (
            problems(host=replace(HOST, reachable=False)),
            "host node1",
            "systemctl restart gridengine-exec",
        ),
        (problems(replace(CELL, callers=("master",))), "host node1", "qconf -as node1"),
        (problems(host=replace(HOST, queues=())), "host node1", "node1 @allhosts"),
        (problems(host=with_state("a")), "all.q@node1", "-explain a -q all.q@node1"),
        (problems(host=with_state("E")), "all.q@node1", "qmod -cq all.q@node1"),
        (problems(host=with_state("d")), "all.q@node1", "qmod -e all.q@node1"),
        (problems(host=with_state("s")), "all.q@node1", "qmod -usq all.q@node1"),
        (
            problems(host=replace(HOST, queues=(QueueInstance(name="all.q"),))),
            "all.q@node1",
            "slots NUMBER",
        ),
        (problems(replace(CELL, complexes=f"{STATE_COMPLEX}\n{NEWER}")), " gpu", "sge-jobs setup"),
        (
            problems(replace(CELL, complexes=f"{GPU_COMPLEX}\n{STATE_COMPLEX}\n{FAULT_COMPLEX}")),
            "no complex (resource) gpu_share",
            "sge-jobs setup",
        ),
        (
            problems(
                replace(CELL, complexes=f"gpu gpu INT <= YES NO 0 0\n{STATE_COMPLEX}\n{NEWER}")
            ),
            " gpu ",
            GPU_COMPLEX,
        ),
        (
            problems(replace(CELL, complexes=f"{GPU_COMPLEX}\n{NEWER}")),
            " gpu_state",
            "sge-jobs setup",
        ),
        (problems(replace(CELL, queues={})), "queue all.q", "--queue NAME"),
        (
            problems(replace(CELL, queues={"all.q": {"starter_method": "NONE"}})),
            "starter_method",
            "sge-jobs setup",
        ),
        (
            problems(replace(CELL, queues={"all.q": {"starter_method": "/site/x"}})),
            "/site/x",
            "gpu-starter",
        ),
        (
            problems(host=replace(HOST, gpu_state="")),
            "host node1 ",
            "load_sensor",
        ),
        (
            problems(replace(CELL, hosts={"node1": {"complex_values": "gpu=4"}})),
            "2 GPUs",
            "sge-jobs setup --gpus node1=2",
        ),
        (
            problems(replace(CELL, hosts={"node1": {}})),
            "2 GPUs",
            "sge-jobs setup",
        ),
        (
            problems(
                host=with_gpu(
                    status=GpuStatus.OUTLIVED,
                    job="7",
                    task="3",
                    intruders=(Intruder(42, "sh"),),
                )
            ),
            "job 7.3",
            "kill 42",
        ),
        (
            problems(
                host=with_gpu(
                    status=GpuStatus.BLOCKED, intruders=(Intruder(43, "jupyter", foreign=True),)
                )
            ),
            "GPU 0 ",
            "kill 43",
        ),
        (
            problems(host=with_gpu(status=GpuStatus.HELD, job="7", intruders=(Intruder(44, "x"),))),
            "GPU 0 ",
            "kill 44",
        ),
    ],
)
def test_each_problem_is_found_alone_and_has_a_fix(
    found: list[Problem], what: str, fix: str
) -> None:
    (problem,) = found
    assert what in problem.what
    assert fix in problem.fix


def test_processes_that_should_not_use_a_gpu_are_listed() -> None:
    intruders = (Intruder(42, "sh"), Intruder(43, "jupyter", foreign=True))
    for status in (GpuStatus.OUTLIVED, GpuStatus.BLOCKED, GpuStatus.HELD):
        (problem,) = problems(host=with_gpu(status=status, job="7", intruders=intruders))
        assert problem.what.startswith("GPU 0 ")
        assert "node1" in problem.what
        assert problem.what.endswith(": 42 sh, 43 jupyter")
        assert problem.fix.endswith(" node1: kill 42 43")


@pytest.mark.parametrize(("configured", "smi"), [("4", True), ("1", False)])
def test_nvidia_smi_is_named_only_where_a_gpu_may_have_failed(configured: str, smi: bool) -> None:
    cell = replace(CELL, hosts={"node1": {"complex_values": f"gpu={configured}"}})
    (problem,) = problems(cell)
    assert configured in problem.what
    assert ("nvidia-smi -L" in problem.fix) == smi


@pytest.mark.parametrize(
    "line", ["10.0.0.1 node1.example.org node1", "10.0.0.1 Node1.lan n1 node1"]
)
def test_a_name_with_its_domain_may_come_first(line: str) -> None:
    assert problems(machine=replace(MACHINE, hosts_file=line)) == []


def test_all_slices_count_where_one_word_cannot_name_them() -> None:
    slices = [GpuUse(index=n, uuid=f"MIG-{n:08x}-1234-1234-1234-123456789012") for n in range(56)]
    word = encode(slices)
    assert len(decode(word)) < 56
    cell = replace(CELL, hosts={"node1": {"complex_values": "gpu=56"}})
    assert problems(cell, replace(HOST, gpu_state=word)) == []
    load = {"node1": {"load_values": f"load_avg=0.1,gpu_state={word}"}}
    assert sensed_gpus(replace(CELL, hosts=load)) == {"node1": 56}
    assert len(gpu_rows([replace(HOST, gpu_state=word)], [])) == 56


def test_the_devices_of_a_resource_map_are_no_further_values() -> None:
    cell = replace(CELL, hosts={"node1": {"complex_values": "license=1,gpu=2(0 1)"}})
    assert problems(cell) == []


@pytest.mark.parametrize(
    ("other", "gpus", "wrong"),
    [
        ({"starter_method": "NONE"}, 2, True),
        ({"starter_method": "NONE,[node2=/x]", "complex_values": "NONE"}, 2, True),
        ({"starter_method": "/x/sge_jobs/node/gpu-starter"}, 2, False),
        ({"starter_method": "NONE", "complex_values": "gpu=0,license=1"}, 2, False),
        ({"starter_method": "NONE"}, None, False),
    ],
)
def test_another_queue_that_starts_jobs_on_gpus_is_named(
    other: dict[str, str], gpus: int | None, wrong: bool
) -> None:
    cell = replace(CELL, queues={**CELL.queues, "long.q": other})
    queues = (*HOST.queues, QueueInstance(name="long.q", slots=4))
    found = problems(cell, replace(HOST, gpus=gpus, queues=queues))
    assert ["queue long.q " in each.what and "node1" in each.what for each in found] == (
        [True] if wrong else []
    )


def test_a_host_without_gpus_needs_no_sensor() -> None:
    cell = replace(CELL, hosts={"node1": {"complex_values": "NONE"}})
    assert problems(cell, replace(HOST, gpu_state="", gpus=None)) == []


def test_a_job_on_the_gpu_of_another_is_named() -> None:
    stray = Intruder(pid=43, command="python3", foreign=True, job="9.2")
    for status in (GpuStatus.HELD, GpuStatus.BLOCKED):
        (found,) = problems(host=with_gpu(status=status, intruders=(stray,)))
        assert all(fact in found.what for fact in ("job 9.2 ", "GPU 0 ", "node1", "43 python3"))
        assert "qdel 9.2" in found.fix


def test_a_manager_who_runs_jobs_is_named() -> None:
    (problem,) = manager_problems(["root", "sgeadmin", "admin"], {"root", "alice", "sgeadmin"})
    assert problem.what.startswith("sgeadmin ")
    assert "qconf -dm sgeadmin" in problem.fix
