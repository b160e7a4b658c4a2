"""Parsers for the real output of Grid Engine 8.1.9, which is in answers/."""

from __future__ import annotations

from pathlib import Path

import pytest

from sge_jobs.model import AccountingRecord, Host, JobStatus, QueuedJob, QueueInstance
from sge_jobs.queue.qacct import parse_accounting
from sge_jobs.queue.qhost import parse_hosts
from sge_jobs.queue.qstat import job_status, parse_error_reason, parse_jobs

ANSWERS = Path(__file__).parents[1] / "answers"


def answer(name: str) -> str:
    return (ANSWERS / name).read_text()


def test_every_row_of_qstat_is_read() -> None:
    jobs = parse_jobs(answer("qstat.xml"))
    assert [(job.id, job.task, job.name, job.state, job.host, job.gpus) for job in jobs] == [
        ("65", "", "suspended", "s", "master", 1),
        ("66", "1", "a_search_of_digits-7", "r", "master", 1),
        ("70", "1,2", "nodir", "qw", "", 0),
        ("66", "3-9:2", "a_search_of_digits-7", "qw", "", 1),
        ("67", "", "held", "hqw", "", 1),
        ("69", "", 'less<&>"', "hqw", "", 0),
    ]
    assert jobs[1] == QueuedJob(
        id="66",
        task="1",
        name="a_search_of_digits-7",
        owner="joe",
        state="r",
        status=JobStatus.RUNNING,
        queue="all.q",
        host="master",
        slots=1,
        since=1795290611.0,
        gpus=1,
    )


def test_an_empty_queue_is_no_error() -> None:
    empty = "<job_info><queue_info></queue_info><job_info></job_info></job_info>"
    assert parse_jobs(empty) == []


def test_milliseconds_of_later_versions_are_read() -> None:
    row = (
        "<job_info><job_list><JB_job_number>1</JB_job_number><state>r</state>"
        "<JAT_start_time>1970-01-01T00:01:00.250</JAT_start_time></job_list></job_info>"
    )
    assert parse_jobs(row)[0].since == 60.25


def test_a_job_listed_under_its_queue_runs_there() -> None:
    text = (
        "<job_info><queue_info><Queue-List><name>gpu.q@node1</name><job_list><JB_job_number>1"
        "</JB_job_number><state>r</state></job_list></Queue-List></queue_info><job_info><job_list>"
        "<JB_job_number>2</JB_job_number><state>qw</state></job_list></job_info></job_info>"
    )
    assert [(job.id, job.queue, job.host) for job in parse_jobs(text)] == [
        ("1", "gpu.q", "node1"),
        ("2", "", ""),
    ]


@pytest.mark.parametrize("broken", ["", "error: ...", "<job_info><job_list>", "<qhost></qhost>"])
def test_what_is_no_answer_of_qstat_is_refused(broken: str) -> None:
    with pytest.raises(ValueError, match=r"XML|<job_info>.*<qhost>"):
        parse_jobs(broken)


@pytest.mark.parametrize(
    ("state", "status"),
    [
        ("qw", JobStatus.PENDING),
        ("Rq", JobStatus.PENDING),
        ("hqw", JobStatus.HELD),
        ("hRwq", JobStatus.HELD),
        ("t", JobStatus.RUNNING),
        ("Rr", JobStatus.RUNNING),
        ("hr", JobStatus.RUNNING),
        ("s", JobStatus.SUSPENDED),
        ("S", JobStatus.SUSPENDED),
        ("T", JobStatus.SUSPENDED),
        ("Eqw", JobStatus.ERROR),
        ("Ehqw", JobStatus.ERROR),
        ("dr", JobStatus.ENDING),
        ("dt", JobStatus.ENDING),
        ("dEqw", JobStatus.ENDING),
    ],
)
def test_letters_of_a_state(state: str, status: JobStatus) -> None:
    assert job_status(state) is status


def test_the_reason_of_state_e_is_told_once_and_without_process_numbers() -> None:
    reason = parse_error_reason(answer("qstat_j.xml"))
    assert reason == 'can\'t open output file "/tmp/joe/a b/log": No such file or directory'
    assert parse_error_reason("<unknown_jobs><ST_name>12</ST_name></unknown_jobs>") == ""


def test_each_run_in_qacct_is_a_record() -> None:
    killed, failed_by_itself, no_log, moved = parse_accounting(answer("qacct.txt"))
    assert killed == AccountingRecord(
        id="2",
        task="1",
        name="arr",
        owner="joe",
        host="master",
        failed=100,
        failed_text="assumedly after job",
        exit_status=137,
        submitted=1795289981.0,
        started=1795289981.0,
        ended=1795290010.0,
        wallclock_s=29.0,
        memory_bytes=4.910 * 1024**2,
    )
    assert (failed_by_itself.failed, failed_by_itself.exit_status) == (0, 3)
    assert (no_log.failed, no_log.failed_text) == (26, "opening input/output file")
    assert (no_log.started, no_log.ended) == (None, None)
    assert (moved.failed, moved.failed_text, moved.submitted) == (25, "rescheduling", None)


@pytest.mark.parametrize("stamp", ["11/21/2026 19:41:12.500", "2026-11-21 19:41:12.500000"])
def test_numbers_of_later_versions_are_read(stamp: str) -> None:
    rule = "=" * 62
    text = (
        f"{rule}\njobnumber    7\ntaskid       undefined\nqsub_time    {stamp}\n"
        "failed       37  : qmaster enforced h_rt, h_cpu, or h_vmem limit\nru_wallclock 12.250\n"
        "maxvmem      1.5G\n"
    )
    (record,) = parse_accounting(text)
    assert record.failed == 37
    assert record.submitted == 1795290072.5
    assert record.wallclock_s == 12.25
    assert record.memory_bytes == 1.5 * 1024**3


def test_hosts_have_as_many_gpus_as_are_left_and_in_use() -> None:
    (host,) = parse_hosts(answer("qhost.xml"), parse_jobs(answer("qstat.xml")))
    assert host == Host(
        name="master",
        reachable=True,
        cores=2,
        slots=2,
        slots_used=2,
        load=0.47,
        gpus=2,
        gpus_used=2,
        queues=(QueueInstance(name="all.q", slots=2, slots_used=2),),
    )


def test_a_host_that_does_not_report_and_has_no_gpus_says_so() -> None:
    text = answer("qhost.xml").replace("'load_avg'>0.47", "'load_avg'>-")
    text = text.replace("'num_proc'>2", "'num_proc'>-").replace("name='gpu'", "name='other'")
    (host,) = parse_hosts(text.replace("'state_string'>", "'state_string'>au"), [])
    assert (host.reachable, host.load, host.cores, host.gpus) == (False, None, 0, None)
    assert host.queues[0].state == "au"
