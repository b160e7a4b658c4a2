"""How answers of HTCondor are read: attributes as HTCondor 23.9 prints them."""

from __future__ import annotations

import pytest

from spearmint.drivers import EndedRun, QueueHost, QueueJobState
from spearmint.drivers.htcondor.ends import parse_end
from spearmint.drivers.htcondor.listing import parse_hosts, parse_jobs
from spearmint.drivers.htcondor.obstacles import emptied, obstacle_of

TOKEN = "0123456789ab"  # noqa: S105


@pytest.mark.parametrize(
    ("ad", "state", "is_rerun"),
    [
        ({"JobStatus": 1}, QueueJobState.PENDING, False),
        ({"JobStatus": 1, "NumShadowStarts": 1}, QueueJobState.PREEMPTED, True),
        ({"JobStatus": 2, "NumShadowStarts": 1}, QueueJobState.RUNNING, False),
        ({"JobStatus": 2, "NumShadowStarts": 2}, QueueJobState.RUNNING, True),
        ({"JobStatus": 3}, QueueJobState.ENDING, False),
        ({"JobStatus": 6}, QueueJobState.RUNNING, False),
        ({"JobStatus": 7}, QueueJobState.SUSPENDED, False),
        ({"JobStatus": 5, "HoldReasonCode": 1}, QueueJobState.HELD, False),
        ({"JobStatus": 5, "HoldReasonCode": 15}, QueueJobState.HELD, False),
        ({"JobStatus": 5, "HoldReasonCode": 34}, QueueJobState.ENDING, False),
        ({"JobStatus": 17}, QueueJobState.RUNNING, False),
    ],
)
def test_states_of_jobs(ad: dict[str, object], state: QueueJobState, is_rerun: bool) -> None:
    more = {"ClusterId": 12, "ProcId": 0, "SpearmintToken": TOKEN, "HoldReason": "why"}
    (found,) = parse_jobs([{**more, "RemoteHost": "slot1_1@node001", **ad}])
    assert (found.id, found.token, found.state) == ("12.0", TOKEN, state)
    assert (found.host, found.is_rerun) == ("node001", is_rerun)
    assert (found.text == "why") is (ad["JobStatus"] == 5)


def test_a_completed_job_in_the_queue_has_ended() -> None:
    assert parse_jobs([{"ClusterId": 1, "ProcId": 0, "JobStatus": 4}]) == []


def test_hosts_that_accept_jobs() -> None:
    ads = [
        {"Machine": "a", "TotalSlotCpus": 4, "TotalSlotGPUs": 2, "State": "Unclaimed"},
        {"Machine": "b", "TotalSlotCpus": 1.0, "State": "Claimed"},
        {"Machine": "b", "TotalSlotCpus": 1, "State": "Claimed"},
        {"Machine": "c", "TotalSlotCpus": 8, "State": "Drained"},
        {"Machine": "d", "TotalSlotCpus": 8, "State": "Unclaimed", "Offline": True},
        {"Machine": "b", "TotalSlotCpus": "/Expr(undefined)/", "TotalSlotGPUs": None},
    ]
    own = QueueHost(name="b", slots=1)
    assert parse_hosts(ads) == [QueueHost(name="a", slots=4, gpus=2), own, own, own]


END = {"LastRemoteHost": "slot1_2@node002", "JobCurrentStartDate": 1000}


@pytest.mark.parametrize(
    ("ad", "expected"),
    [
        ({"JobStatus": 4, "ExitBySignal": False, "ExitCode": 3}, {"exit_status": 3}),
        ({"JobStatus": 4, "ExitBySignal": True, "ExitSignal": 9}, {"signal": 9}),
        (
            {
                "JobStatus": 3,
                "LastJobStatus": 5,
                "ExitBySignal": True,
                "ExitSignal": 15,
                "LastHoldReason": "The job exceeded allowed job duration of 00:04",
                "LastHoldReasonCode": 46,
                "RemoveReason": "The job attribute PeriodicRemove expression",
            },
            {"timed_out": True, "failure": "The job exceeded allowed job duration of 00:04"},
        ),
        (
            {
                "JobStatus": 3,
                "LastJobStatus": 5,
                "LastHoldReason": "out of memory",
                "LastHoldReasonCode": 34,
            },
            {"limit": "out of memory", "failure": "out of memory"},
        ),
        (
            {
                "JobStatus": 3,
                "LastJobStatus": 2,
                "LastHoldReason": "of an earlier hold",
                "LastHoldReasonCode": 46,
                "RemoveReason": "via condor_rm (by user ana)",
            },
            {"failure": "via condor_rm (by user ana)"},
        ),
    ],
)
def test_how_a_job_ended(ad: dict[str, object], expected: dict[str, object]) -> None:
    found = parse_end({**END, "EnteredCurrentStatus": 1005, **ad})
    assert found == EndedRun(host="node002", ended=1005, seconds=5, **expected)


def test_a_job_that_never_ran_has_no_host() -> None:
    ad = {"JobStatus": 3, "EnteredCurrentStatus": 1005, "LastRemoteHost": None}
    assert parse_end(ad) == EndedRun(ended=1005, failure="removed")


ANALYSIS = """
The Requirements expression for job 29.000 is

    (TARGET.Arch == "X86_64") && (TARGET.GPUs >= RequestGPUs)

Job 29.000 defines the following attributes:

    DiskUsage = 1500
    RequestDisk = DiskUsage (kb)
    RequestGPUs = 3

The Requirements expression for job 29.000 reduces to these conditions:

         Slots
Step    Matched  Condition
-----  --------  ---------
[0]           3  TARGET.Arch == "X86_64"
[7]           {matched}  TARGET.GPUs >= RequestGPUs


029.000:  Run analysis summary ignoring user priority.  Of {machines} machines,
      {by_job} are rejected by your job's requirements
      {by_machine} reject your job because of their own requirements
      0 match and are already running your jobs
      0 match but are serving other users
      {able} are able to run your job
"""


def analysis(*, by_job: int, by_machine: int = 0, machines: int = 3) -> str:
    able = machines - by_job - by_machine
    return ANALYSIS.format(
        matched=able, machines=machines, by_job=by_job, by_machine=by_machine, able=able
    )


def test_a_job_that_no_machine_can_run() -> None:
    found = obstacle_of("29.0", analysis(by_job=3))
    assert found
    assert not found.passes
    assert "29.0: none of 3 machines meets: TARGET.GPUs >= RequestGPUs (RequestGPUs = 3)" in (
        found.reason
    )
    assert "condor_q -better-analyze 29.0" in found.fix


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        (analysis(by_job=2), None),
        (analysis(by_job=1, by_machine=1), None),
        (analysis(by_job=2, by_machine=1), True),
        (analysis(by_job=0, machines=0), True),
        ("Job 29.0 is completed", None),
    ],
)
def test_a_job_that_can_start_later(text: str, passes: bool | None) -> None:
    found = obstacle_of("29.0", text)
    assert (found and found.passes) is passes


def test_machines_are_analysed_as_if_they_had_no_job() -> None:
    ad = (
        'AssignedGPUs = "GPU-a0,GPU-b1"\nAvailableGPUs = { }\nCpus = 1\nGPUs = 0\n'
        'MachineResources = "Cpus Memory GPUs"\nTotalSlotCpus = 4\nTotalSlotGPUs = 2\n'
    )
    first, second = emptied(f"{ad}\n\n{ad}\n").strip().split("\n\n")
    assert first == second
    last = dict(line.split(" = ", 1) for line in first.splitlines())
    assert (last["Cpus"], last["GPUs"]) == ("4", "2")
    assert last["AvailableGPUs"] == "{ GPUs_GPU_a0,GPUs_GPU_b1 }"
    assert last["LastHeardFrom"] == "undefined"  # a job can wait for a lost machine
