"""Trials of Celery while workers, controllers and brokers are killed, on real brokers."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from spearmint.drivers import DriverSettings
from spearmint.drivers.base import JobState
from spearmint.drivers.celery import CeleryDriver, CeleryQueue, lost
from spearmint.drivers.celery.app import make_app
from spearmint.drivers.celery.broker import FILE, find_broker, queue_name
from spearmint.drivers.celery.messages import TASK, arguments
from spearmint.drivers.celery.records import Records
from spearmint.drivers.processes import identity
from spearmint.drivers.testing.trials import (
    PARENT,
    QUICK,
    child_of,
    make_request,
    poll_until,
    submit_again,
    until_gone,
    value_of,
)
from spearmint.errors import DriverUnreachable
from spearmint.resources import Resources
from tests.testbed.brokers import BROKERS, PASSWORD, Broker
from tests.testbed.celery_workers import SPEARMINT, Worker, connected
from tests.waiting import text_of, until

pytestmark = pytest.mark.celery

ONCE = pytest.mark.parametrize("broker", ["redis"], indirect=True)  # the broker has no part in it
NONE = ("--gpus", "none")
WAYS = pytest.mark.parametrize("file_transfer", ["auto", "yes"])
GATED = (
    "import os, time\ndef main(job_id, params):\n"
    "    open(f'starts.{job_id}', 'a').write('x')\n"
    "    while not os.path.exists('go'):\n        time.sleep(0.01)\n    return 0.5\n"
)


@pytest.fixture(scope="module", params=sorted(BROKERS))
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    made = BROKERS[request.param]()
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture(autouse=True)
def environment(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if not broker.answers():  # a test that failed left it so
        broker.start()
    file = tmp_path / "broker.toml"
    file.touch(0o600)
    file.write_text(f'url = "{broker.url}"\nkey = "the key of signatures"\n')
    monkeypatch.setenv(FILE, str(file))
    monkeypatch.setenv("USER", f"user{abs(hash(request.node.name)) % 10**6}")  # its own queue
    monkeypatch.setenv("LOGNAME", os.environ["USER"])
    monkeypatch.setattr(lost, "_LOOK_S", 0.2)
    monkeypatch.setattr(lost, "_RESEND_S", (1.0, 2.0))


def driver_of(
    root: Path, *, lease_s: float = 30.0, gpus: int = 0, file_transfer: str = "auto"
) -> CeleryDriver:
    need = Resources(gpus=gpus, file_transfer=file_transfer)
    settings = DriverSettings(directory=root, polling_s=0.2, resources=need)
    return CeleryDriver(settings, queue=CeleryQueue(settings, lease_s=lease_s))


def starts(root: Path, trial_id: int) -> int:
    return len(text_of(root / f"starts.{trial_id}"))


def log_of(root: Path) -> Path:
    return root / "worker.log"


@ONCE
@WAYS
def test_a_killed_worker_leaves_no_process_and_the_trial_is_retried(
    tmp_path: Path, file_transfer: str
) -> None:
    driver = driver_of(tmp_path, file_transfer=file_transfer)
    request = make_request(tmp_path, PARENT)
    with Worker(tmp_path, log_of(tmp_path), *NONE) as worker:
        job = driver.submit(request)
        poll_until(driver, job, tmp_path / "child.pid")
        child = child_of(tmp_path)
        [slot] = worker.slots()
        slot.kill()
        until_gone(driver, job)
        assert identity(child) is None, "an orphan of the killed worker runs"
        assert "worker died" in driver.explain(job).text
        (tmp_path / "wrapper.py").write_text(QUICK)
        again = driver.submit(request)  # the restarted worker runs it
        until_gone(driver, again)
        assert value_of(request) == 0.5


@ONCE
@WAYS
def test_a_lost_host_is_noticed_by_its_lease_only(tmp_path: Path, file_transfer: str) -> None:
    driver = driver_of(tmp_path, lease_s=10.0, file_transfer=file_transfer)
    request = make_request(tmp_path, PARENT)
    with Worker(tmp_path, log_of(tmp_path), *NONE) as worker:
        job = driver.submit(request)
        poll_until(driver, job, tmp_path / "child.pid")
        until(lambda: driver.poll([job])[job] is JobState.ALIVE)
        for process in worker.family():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.suspend()
        until_gone(driver, job)
        assert "no sign of life" in driver.explain(job).text
        for process in worker.family():  # the host is back: it must not continue the old trial
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()
        until(lambda: identity(child_of(tmp_path)) is None)
        assert not request.folder.result.exists()
        places = tmp_path / ".spearmint-worker" / "jobs"
        until(lambda: not list(places.iterdir()))


def test_a_broker_that_dies_loses_no_trial_and_repeats_none(tmp_path: Path, broker: Broker) -> None:
    driver = driver_of(tmp_path)
    requests = [make_request(tmp_path, GATED, number) for number in range(1, 4)]
    with Worker(tmp_path, log_of(tmp_path), *NONE):
        jobs = [driver.submit(request) for request in requests]
        until(lambda: starts(tmp_path, 1))
        time.sleep(3)  # longer than RabbitMQ's consumer_timeout here
        broker.kill()
        assert driver.poll(jobs)[jobs[0]] is JobState.ALIVE
        extra = make_request(tmp_path, GATED, 4)
        with pytest.raises(DriverUnreachable):
            driver.submit(extra)
        broker.start()
        jobs.append(submit_again(driver, extra))
        requests.append(extra)
        (tmp_path / "go").touch()

        until(lambda: set(driver.poll(jobs).values()) == {JobState.GONE}, 120)
    assert [starts(tmp_path, number) for number in range(1, 5)] == [1, 1, 1, 1]
    assert [value_of(request) for request in requests] == [0.5] * 4
    assert b"timeout" not in (broker.directory / "log").read_bytes().lower()


def test_a_message_delivered_again_starts_nothing(tmp_path: Path) -> None:
    driver, request = driver_of(tmp_path), make_request(tmp_path, GATED)
    with Worker(tmp_path, log_of(tmp_path), *NONE, "--slots", "2"):
        job = driver.submit(request)
        for _ in range(3):
            driver._queue._send(job.id)  # type: ignore[attr-defined]
        until(lambda: "another worker runs it" in log_of(tmp_path).read_text())
        (tmp_path / "go").touch()
        until_gone(driver, job)
        second = make_request(tmp_path, QUICK, 2)
        until_gone(driver, driver.submit(second))
    assert starts(tmp_path, 1) == 1


class Bomb:
    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (os.environ["BOMB"],)


def test_foreign_messages_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    monkeypatch.setenv("BOMB", str(tmp_path / "bomb"))
    found, queue = find_broker(), queue_name("")
    driver, request = driver_of(root), make_request(root, QUICK)
    away, forbidden = driver_of(outside, file_transfer="no"), make_request(outside, GATED)
    (root / "link").symlink_to(outside)
    waiting = away.submit(forbidden)
    app = make_app(found, queue)
    app.conf.update(accept_content=["json", "pickle"], task_serializer="json")

    def send(args: object, serializer: str = "json", task: str = TASK) -> None:
        with app.connection_for_write(found.url, heartbeat=0) as connection:
            app.send_task(
                task, args=args, queue=queue, connection=connection, serializer=serializer
            )

    send([Bomb()], "pickle")
    send(["x"], task="os.system")
    send([{"a": 1}, 2])
    send(arguments("wrong key", queue, outside, waiting.id))
    send(arguments(found.key, queue, root / "link", waiting.id))
    send(arguments(found.key, queue, root, "../../../etc"))
    send(arguments(found.key, queue, Path("/nowhere\0"), waiting.id))
    with app.connection_for_write(found.url) as connection:
        connection.SimpleQueue(queue).put("not a task", serializer="json")
    with Worker(root, log_of(tmp_path), *NONE):
        until_gone(driver, driver.submit(request))
        assert value_of(request) == 0.5
    assert not (tmp_path / "bomb").exists()
    assert starts(outside, 1) == 0
    assert away.poll([waiting])[waiting] is JobState.WAITING
    assert log_of(tmp_path).read_text().count("refused a message") >= 6
    assert PASSWORD not in log_of(tmp_path).read_text()


@ONCE
def test_workers_share_gpus_out_and_trials_see_no_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    smi = tmp_path / "bin" / "nvidia-smi"
    smi.parent.mkdir()
    smi.write_text(
        "#!/bin/sh\necho 'GPU 0: NVIDIA X (UUID: GPU-aaaa-1)'\n"
        "echo 'GPU 1: NVIDIA X (UUID: GPU-bbbb-2)'\n"
    )
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{smi.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("SPEARMINT_GPU_LOCKS", str(tmp_path / "locks"))
    code = "import json\n" + GATED.replace(
        "    while", "    open(f'env.{job_id}', 'w').write(json.dumps(dict(os.environ)))\n    while"
    )
    driver = driver_of(tmp_path, gpus=1)
    requests = [make_request(tmp_path, code, number) for number in (1, 2)]
    log = log_of(tmp_path)
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(Worker(tmp_path, log, "--gpus", "1"))
        stack.enter_context(Worker(tmp_path, tmp_path / "worker2.log", "--gpus", "all"))
        taken = {"GPU-aaaa-1", "GPU-bbbb-2"}
        until(lambda: {str(slot["gpu"]) for slot in connected()} == taken)
        argv = [*SPEARMINT, "worker", "--gpus", "1"]
        third = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert third.returncode == 1, third.stderr
        jobs = [driver.submit(request) for request in requests]
        until(lambda: all(text_of(tmp_path / f"env.{n}").endswith("}") for n in (1, 2)))
        seen = [json.loads((tmp_path / f"env.{n}").read_text()) for n in (1, 2)]
        assert {env["CUDA_VISIBLE_DEVICES"] for env in seen} == taken
        assert not [v for env in seen for v in env.values() if PASSWORD in v]
        lines = [" ".join(_cmdline(process)) for process in psutil.process_iter()]
        assert not [line for line in lines if PASSWORD in line]
        until(lambda: {str(slot["trial"]) for slot in connected()} == {r.name for r in requests})
        first.process.terminate()  # a drain: its trial runs to its end
        time.sleep(1)
        (tmp_path / "go").touch()
        assert first.process.wait() == 0
        for job in jobs:
            until_gone(driver, job)
        assert [value_of(request) for request in requests] == [0.5, 0.5]
        assert PASSWORD not in log.read_text()


@ONCE
def test_a_search_goes_on_after_its_controller_was_killed(tmp_path: Path) -> None:
    (tmp_path / "config.pb").write_text(
        'language: PYTHON\nname: "wrapper"\nvariable { name: "x" type: FLOAT min: 0 max: 1 }\n'
    )
    (tmp_path / "wrapper.py").write_text(
        "import time\ndef main(job_id, params):\n    open(f'starts.{job_id}', 'a').write('x')\n"
        "    time.sleep(0.3)\n    return float(params['x'][0])\n"
    )
    argv = [*SPEARMINT, "--driver=CELERY", "--gpus=0", "--method=RandomChooser"]
    argv += ["--max-finished-jobs=6", "--polling-time=1", str(tmp_path)]
    with Worker(tmp_path, log_of(tmp_path), *NONE, "--slots", "2"):
        for count in (1, 3):
            with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as controller:
                until(lambda count=count: starts(tmp_path, count))  # type: ignore[misc]
                controller.kill()
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert [starts(tmp_path, number) for number in range(1, 7)] == [1] * 6
    assert Records(tmp_path).all() == []


def _cmdline(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
