"""Jobs that do not start, and hosts that are out of the rotation."""

from __future__ import annotations

from sge_jobs.cell.qconf import Qconf
from sge_jobs.cell.rotation import rotation_problems
from sge_jobs.cell.stuck_jobs import may_be_stuck, stuck_problems
from sge_jobs.model import Host, QueuedJob
from sge_jobs.node.failed_start import FailedStart, encode
from sge_jobs.queue.qstat import job_status, parse_failed_starts


def job(id: str, state: str, owner: str = "alice") -> QueuedJob:
    return QueuedJob(id=id, name="x", owner=owner, state=state, status=job_status(state))


def test_jobs_of_one_user_with_one_reason_are_one_problem() -> None:
    same = FailedStart("node001", "no space", at=1, times=1)
    jobs = [job(str(number), "Eqw") for number in range(30)] + [job("90", "Eqw", "bob")]
    starts = {each.id: same for each in jobs}
    alice, bob = stuck_problems(jobs, starts)
    assert all(fact in alice.what for fact in ("alice", "node001", "no space", "20 more"))
    assert "bob" in bob.what
    assert "qmod -cj 90 " in bob.fix


def test_a_job_that_a_host_reschedules_for_ever_is_a_problem() -> None:
    again = FailedStart("node001", "no GPU", at=1, times=3)
    jobs = [job("1", "Rq"), job("2", "Rr"), job("3", "qw")]
    assert [may_be_stuck(each) for each in jobs] == [True, True, False]
    (problem,) = stuck_problems(jobs[:2], {"1": again, "2": FailedStart("node001", "x", times=2)})
    assert "job 1 of alice" in problem.what
    assert "node001" in problem.what


def test_reasons_of_several_jobs_in_one_answer() -> None:
    word = encode(FailedStart("node001", "no GPU", at=1, times=2))
    stamp = "11/22/2026 21:18:13 [105:89]: "
    context = f"<VA_variable>sge_jobs_failed</VA_variable><VA_value>{word}</VA_value>"
    jobs = {
        "3": f"{context}<QIM_message>{stamp}exit_status of job start = 100</QIM_message>",
        "4": f"<QIM_message>{stamp}error: can&apos;t chdir to /x</QIM_message>",
        "5": "",
    }
    rows = (f"<element><JB_job_number>{id}</JB_job_number>{x}</element>" for id, x in jobs.items())
    text = f"<detailed_job_info><djob_info>{''.join(rows)}</djob_info></detailed_job_info>"
    found = parse_failed_starts(text)
    assert {id: (start.host, start.reason) for id, start in found.items()} == {
        "3": ("node001", "no GPU"),
        "4": ("", "can't chdir to /x"),
    }


def test_a_host_out_of_the_rotation_is_a_problem_with_its_reason() -> None:
    word = encode(FailedStart("node001", "no space", at=1700000000, times=2))
    hosts = [
        Host(name="node001", reachable=True, gpu_fault=word),
        Host(name="node002", reachable=True, gpu_fault="none"),
        Host(name="node003", reachable=True),
    ]
    (problem,) = rotation_problems(hosts, "/opt/gpu-starter")
    assert all(fact in problem.what for fact in ("node001", "2023-11-14 22:13:20", "no space"))
    assert "/opt/gpu-starter --start-check" in problem.fix


def test_the_managers_are_those_of_qconf(monkeypatch) -> None:
    monkeypatch.setattr(Qconf, "_names", lambda self, option: ["root"] if option == "-sm" else [])
    assert Qconf().managers() == ["root"]
