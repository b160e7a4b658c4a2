"""Trials move away from hosts that cannot start them, and only then."""

from __future__ import annotations

from pathlib import Path

import pytest

from spearmint.drivers import (
    EndedRun,
    FailedStart,
    JobState,
    QueueHost,
    QueueJob,
    QueueJobState,
)
from spearmint.drivers import host_starts as hosts_module
from spearmint.drivers import queue_starts as starts_module
from spearmint.drivers.host_starts import HostStarts
from spearmint.drivers.sge.spec import _avoiding
from spearmint.drivers.submission import token_of
from spearmint.layout import write_json

HOSTS = [f"node{number}" for number in range(10)]


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [1e9]
    monkeypatch.setattr(hosts_module.time, "time", lambda: clock[0])
    return clock


def test_a_host_is_avoided_by_its_trial_at_once_and_by_all_after_two_failures(
    tmp_path: Path, now: list[float]
) -> None:
    hosts = HostStarts(tmp_path / "hosts.json")
    assert hosts.failed("a", "node1", "no space", HOSTS)
    assert (hosts.avoided("a"), hosts.avoided("b")) == (("node1",), ())
    assert hosts.take() == []
    assert hosts.failed("b", "node1", "no space", HOSTS)
    assert hosts.avoided() == ("node1",)
    (told,) = hosts.take()
    assert "node1" in told
    assert "no space" in told
    assert HostStarts(tmp_path / "hosts.json").avoided() == ("node1",), "the next controller"
    now[0] += 601
    hosts.expire()
    assert hosts.avoided("a") == ()
    assert len(hosts.take()) == 1
    hosts.failed("c", "node1", "no space", HOSTS)
    now[0] += 1100
    assert hosts.avoided() == ("node1",), "longer the second time, after one failure"


def test_a_host_is_left_to_a_trial_that_was_moved_before_others_were_excluded(
    tmp_path: Path, now: list[float]
) -> None:
    hosts, three = HostStarts(tmp_path / "hosts.json"), HOSTS[:3]
    assert hosts.failed("a", "node1", "x", three)
    for token, name in (("b", "node0"), ("c", "node0"), ("d", "node2"), ("e", "node2")):
        hosts.failed(token, name, "x", three)
    assert hosts.avoided() == ("node0", "node2")
    assert hosts.avoided("a") == ("node0", "node2"), "its job could never start"


def test_a_trial_that_starts_clears_its_host(tmp_path: Path, now: list[float]) -> None:
    hosts = HostStarts(tmp_path / "hosts.json")
    for token in "ab":
        hosts.failed(token, "node1", "x", HOSTS)
    hosts.started("node1", now[0] - 5)
    assert hosts.avoided() == ("node1",), "it started before the failures"
    hosts.started("node1", now[0] + 5)
    assert hosts.avoided() == ()
    hosts.failed("c", "node1", "x", HOSTS)
    assert hosts.avoided() == ()


def test_the_last_host_is_never_avoided(tmp_path: Path, now: list[float]) -> None:
    hosts = HostStarts(tmp_path / "hosts.json")
    moves = [hosts.failed(token, name, "x", HOSTS[:2]) for token in "abc" for name in HOSTS[:2]]
    assert not all(moves)
    assert len(hosts.avoided()) <= 1
    assert not HostStarts(tmp_path / "other").failed("a", "node1", "x", ["node1"])


def test_a_trial_that_fails_everywhere_stops_moving(tmp_path: Path, now: list[float]) -> None:
    hosts = HostStarts(tmp_path / "hosts.json")
    moved = [hosts.failed("a", name, "can't chdir", HOSTS) for name in HOSTS[:3]]
    assert moved == [True, True, False]
    assert not hosts.failed("b", "node5", "x", HOSTS) or hosts.avoided() == ()


def test_all_trials_that_fail_everywhere_stop_moving(tmp_path: Path, now: list[float]) -> None:
    hosts = HostStarts(tmp_path / "hosts.json")
    moves = sum(hosts.failed(f"{n}", HOSTS[n // 2], "x", HOSTS) for n in range(20))
    assert moves < 8
    assert len(hosts.avoided()) < len(HOSTS)


def test_several_sick_hosts_are_no_reason_against_a_trial(tmp_path: Path, now: list[float]) -> None:
    hosts = HostStarts(tmp_path / "hosts.json")
    hosts.started("node9", now[0])
    for name in HOSTS[:4]:
        assert hosts.failed("first", name, "x", HOSTS)
        assert hosts.failed(f"other {name}", name, "x", HOSTS)
    assert hosts.avoided() == tuple(HOSTS[:4])


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": 1}', '{"a": {"until": "x"}}'])
def test_a_damaged_file_is_ignored(tmp_path: Path, text: str) -> None:
    (tmp_path / "hosts.json").write_text(text)
    assert HostStarts(tmp_path / "hosts.json").avoided() == ()


def test_requests_for_hosts_are_combined() -> None:
    assert _avoiding(("a=1",), ()) == ("a=1",)
    assert _avoiding((), ("n1",)) == ("h=!n1",)
    assert _avoiding(("a=1,h=n*", "b=2"), ("n1", "n2")) == ("a=1", "b=2", "h=(n*)&!(n1|n2)")


# The driver


@pytest.fixture
def cell(queue, monkeypatch: pytest.MonkeyPatch):
    """Three hosts, and the failed starts that a test sets."""
    queue.known_hosts = [QueueHost(name=f"n{number}", slots=4, gpus=2) for number in (1, 2, 3)]
    queue.starts: dict[str, FailedStart] = {}
    monkeypatch.setattr(queue, "failed_start", lambda id: queue.starts.get(id))
    return queue


def test_a_job_in_error_for_its_host_is_replaced_without_counting(make, cell, request_of) -> None:
    driver, request = make(), request_of(1)
    job = driver.submit(request)
    cell.starts[job.id] = FailedStart(host="n1", reason="no space")
    cell.set_state(job.id, QueueJobState.ERROR, reason="100")
    states = [driver.poll([job])[job] for _ in range(2)]
    assert states[-1] is JobState.GONE
    end = driver.explain(job)
    assert (end.again, end.counts) == (True, False)
    assert "n1" in end.text
    assert driver.notices() == [], "the controller tells it"
    again = driver.submit(request)
    assert cell.specs[again.id].avoid == ("n1",)
    assert driver.capacity() == 6


def test_a_job_that_a_host_reruns_for_ever_is_replaced(make, cell, request_of, monkeypatch) -> None:
    monkeypatch.setattr(starts_module, "_ASK_S", 0)
    monkeypatch.setattr(starts_module, "_ACCOUNTING_S", 0)
    driver, request = make(), request_of(1)
    job = driver.submit(request)
    listed = QueueJob(
        id=job.id, token=token_of(request.folder), state=QueueJobState.PENDING, is_rerun=True
    )
    monkeypatch.setattr(cell, "jobs", lambda: [] if cell.cancelled else [listed])
    runs: list[EndedRun] = []
    monkeypatch.setattr(cell, "accounting", lambda id: runs)
    for end in range(3):
        assert driver.poll([job])[job] is JobState.WAITING
        assert not cell.cancelled
        runs.append(EndedRun(host="n2", ended=float(end), seconds=1.0, exit_status=99))
    driver.poll([job])
    assert driver.poll([job])[job] is JobState.GONE
    assert not driver.explain(job).counts
    again = driver.submit(request)
    assert cell.specs[again.id].avoid == ("n2",)


def test_a_job_that_is_rerun_on_one_host_after_the_other_ends_and_blames_no_host(
    make, cell, request_of, monkeypatch
) -> None:
    monkeypatch.setattr(starts_module, "_ASK_S", 0)
    monkeypatch.setattr(starts_module, "_ACCOUNTING_S", 0)
    driver, request = make(), request_of(1)
    job = driver.submit(request)
    listed = QueueJob(
        id=job.id, token=token_of(request.folder), state=QueueJobState.PENDING, is_rerun=True
    )
    monkeypatch.setattr(cell, "jobs", lambda: [] if cell.cancelled else [listed])
    runs = [EndedRun(host="n1", ended=0.0, seconds=3600.0)]
    monkeypatch.setattr(cell, "accounting", lambda id: runs)
    for end, host in enumerate(("n1", "n2", "n3", "n1", "n2", "n3"), 1):
        assert driver.poll([job])[job] is JobState.WAITING
        assert not cell.cancelled, f"{end - 1} short runs; the long one does not count"
        runs.append(EndedRun(host=host, ended=float(end), seconds=1.0, exit_status=99))
    driver.poll([job])
    assert driver.poll([job])[job] is JobState.GONE
    end = driver.explain(job)
    assert (end.counts, end.again) == (True, True)
    assert "6 times" in end.text
    assert all(name in end.text for name in ("n1", "n2", "n3"))
    again = driver.submit(request)
    assert cell.specs[again.id].avoid == ()


def test_a_job_that_exits_before_its_trial_started_blames_the_host(
    make, cell, request_of, monkeypatch
) -> None:
    driver, request = make(), request_of(1)
    job = driver.submit(request)
    cell.remove(job.id)
    assert driver.poll([job])[job] is JobState.GONE
    run = EndedRun(host="n3", ended=1.0, seconds=0.1, exit_status=1)
    monkeypatch.setattr(cell, "accounting", lambda id: [run])
    write_json(request.folder.runner, {"pid": 1, "host": "n3", "start": 5.0})
    assert driver.explain(job).counts, "the trial had started"
    request.folder.runner.unlink()
    assert not driver.explain(job).counts


def test_a_cancelled_call_is_repeated(make, cell, request_of, monkeypatch) -> None:
    driver, request = make(), request_of(1)
    job = driver.submit(request)
    cell.starts[job.id] = FailedStart(host="n1", reason="no space")
    cell.set_state(job.id, QueueJobState.ERROR)
    calls = []
    monkeypatch.setattr(cell, "cancel", calls.append)
    for _ in range(3):
        driver.poll([job])
    assert calls == [[job.id]] * 3
