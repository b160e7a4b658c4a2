"""Searches by Celery whose workers do not see the experiment, on a real Redis."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from spearmint.drivers.celery.broker import FILE
from spearmint.drivers.celery.post.place import NAME
from tests.testbed.brokers import RabbitMQ, Redis, RedisWithTls
from tests.testbed.celery_workers import SPEARMINT, Worker
from tests.waiting import text_of, until

pytestmark = [pytest.mark.celery, pytest.mark.mount]

KEY = "the key of signatures"
DATA = 5 << 20
STEPS = 30
CONFIG = 'language: PYTHON\nname: "wrapper"\nvariable { name: "x" type: FLOAT min: 0 max: 1 }\n'
CODE = """
import os, time
from pathlib import Path
import spearmint

NOTES = Path(@NOTES)

def note(job_id, text):
    with (NOTES / str(job_id)).open("a") as file:
        file.write(text + "\\n")

def main(job_id, params):
    assert not Path(@HIDDEN, "config.pb").exists(), "the host sees the experiment"
    assert len(Path(__file__).with_name("data.bin").read_bytes()) == @DATA
    path = Path(os.environ["SPEARMINT_TRIAL_DIR"], "step")
    first = int(path.read_text()) if path.exists() else 0
    note(job_id, f"start {first} {os.environ.get('HOST_OF_TEST')}")
    for step in range(first, @STEPS):
        spearmint.report(step, 1.0)
        print("step", step, flush=True)
        path.with_name("new").write_text(str(step + 1))
        path.with_name("new").replace(path)
        note(job_id, f"step {step}")
        while (NOTES / "wait").exists() and step == 3:
            time.sleep(0.01)
        time.sleep(0.1)
    note(job_id, "end")
    return float(params["x"][0])
"""


class Search:
    """A search whose directory the workers do not see."""

    def __init__(self, base: Path, config: str = CONFIG, code: str = CODE) -> None:
        self.directory, self.notes, self.base = base / "e", base / "notes", base
        for path in (self.directory, self.notes):
            path.mkdir()
        (self.directory / "config.pb").write_text(config)
        values = {"NOTES": str(self.notes), "HIDDEN": str(self.directory)}
        for name, value in {**values, "DATA": DATA, "STEPS": STEPS}.items():
            code = code.replace(f"@{name}", repr(value))
        (self.directory / "wrapper.py").write_text(code)
        (self.directory / "data.bin").write_bytes(os.urandom(DATA))

    def worker(self, name: str, *options: str) -> Worker:
        root = self.base / name
        root.mkdir(exist_ok=True)
        log, none = self.base / f"{name}.log", ("--gpus", "none")
        return Worker(root, log, *none, *options, hidden=self.directory, HOST_OF_TEST=name)

    def argv(self, trials: int) -> list[str]:
        argv = [*SPEARMINT, "--driver=CELERY", "--gpus=0", "--method=RandomChooser"]
        return [*argv, f"--max-finished-jobs={trials}", "--polling-time=1", str(self.directory)]

    def run(self, trials: int) -> None:
        argv = self.argv(trials)
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=3000)
        assert done.returncode == 0, done.stderr + done.stdout

    def noted(self, trial: int) -> list[str]:
        return text_of(self.notes / str(trial)).splitlines()

    def starts(self, trial: int) -> list[list[str]]:
        return [line.split() for line in self.noted(trial) if line.startswith("start")]

    def hosts(self) -> set[str]:
        """Return the hosts on which trials started."""
        trials = [int(path.name) for path in self.notes.glob("[0-9]*")]
        return {start[2] for trial in trials for start in self.starts(trial)}

    def file(self, trial: int, name: str) -> Path:
        return self.directory / "jobs" / f"{trial:08d}" / name

    def assert_complete(self, trials: int) -> None:
        for number in range(1, trials + 1):
            assert "value" in json.loads(self.file(number, "result.json").read_text())
            assert self.file(number, "files/step").read_text() == str(STEPS)
            rows = self.file(number, "reports.csv").read_text().split()
            last = self.starts(number)[-1]
            assert {int(row.split(",")[0]) for row in rows} >= set(range(int(last[1]), STEPS))


def name_broker(path: Path, **values: str) -> str:
    """Write a broker file and return its path."""
    path.touch(0o600)
    path.write_text("".join(f'{name} = "{value}"\n' for name, value in values.items()))
    return str(path)


@pytest.fixture
def redis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Redis]:
    made = Redis()
    made.start()
    monkeypatch.setenv(FILE, name_broker(tmp_path / "broker.toml", url=made.url, key=KEY))
    yield made
    made.close()


@pytest.fixture
def search(tmp_path: Path, redis: Redis) -> Search:
    return Search(tmp_path)


def test_a_search(search: Search) -> None:
    reports, result = search.file(1, "reports.csv"), search.file(1, "result.json")
    (search.notes / "wait").touch()
    with (
        search.worker("host1", "--slots", "2"),
        search.worker("host2"),
        subprocess.Popen(search.argv(6), stdout=subprocess.DEVNULL) as controller,
    ):
        hosts = {"host1", "host2"}
        until(lambda: reports.exists() and search.hosts() == hosts, 120)
        assert not result.exists(), "reports arrive while the trial runs"
        (search.notes / "wait").unlink()
        assert controller.wait(600) == 0
    search.assert_complete(6)
    for number in range(1, 7):
        assert len(search.starts(number)) == 1
        output = (search.directory / "output" / f"{number:08d}.out").read_text().splitlines()
        steps = [line for line in output if line.startswith("step")]
        assert steps == [f"step {step}" for step in range(STEPS)]
    for host in hosts:
        base = search.base / host / NAME
        assert not list((base / "jobs").iterdir()), "a directory of an ended trial is left"
        large = [p for p in (base / "cache").iterdir() if p.stat().st_size > DATA]
        assert len(large) == 1, "the data is in the cache once"


def test_broker_and_controller_are_killed(search: Search, redis: Redis) -> None:
    (search.notes / "wait").touch()
    with search.worker("host1"):
        with subprocess.Popen(search.argv(2), stdout=subprocess.DEVNULL) as controller:
            until(lambda: search.file(1, "files/step").exists(), 120)
            redis.kill()  # it stores nothing
            controller.send_signal(signal.SIGKILL)
        redis.start()
        (search.notes / "wait").unlink()
        search.run(2)
    search.assert_complete(2)
    assert len(search.starts(1)) == len(search.starts(2)) == 1


def test_another_host_continues_from_the_checkpoint(search: Search) -> None:
    (search.notes / "wait").touch()
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(search.worker("host1"))
        controller = stack.enter_context(
            subprocess.Popen(search.argv(1), stdout=subprocess.DEVNULL)
        )
        step = search.file(1, "files/step")
        until(lambda: int(text_of(step) or 0) >= 3, 120)
        first.close()  # kills all its processes
        (search.notes / "wait").unlink()
        stack.enter_context(search.worker("host2"))
        assert controller.wait(600) == 0
    search.assert_complete(1)
    [one, two] = search.starts(1)
    assert (one[2], two[2]) == ("host1", "host2")
    assert int(two[1]) >= 3


# The first trial of a job ends at once.
BATCH = CODE.replace("def main(job_id, params):", "def train(trial):\n    job_id = trial.id")
BATCH = BATCH.replace('Path(os.environ["SPEARMINT_TRIAL_DIR"], "step")', 'trial.files / "step"')
BATCH = BATCH.replace("spearmint.report(", "trial.report(")
BATCH = BATCH.replace('return float(params["x"][0])', 'trial.tell(trial.params["x"])')
BATCH += """
def main_batch(trials):
    from concurrent.futures import ThreadPoolExecutor
    if trials[0].id == 1:
        trials[0].tell(0.25)
    with ThreadPoolExecutor(len(trials)) as pool:
        list(pool.map(train, [trial for trial in trials if not trial.has_ended]))
"""


def test_trials_of_a_job_that_another_host_continues(tmp_path: Path, redis: Redis) -> None:
    search = Search(tmp_path, CONFIG + "batch: 3\n", BATCH)
    (search.notes / "wait").touch()
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(search.worker("host1"))
        controller = stack.enter_context(
            subprocess.Popen(search.argv(3), stdout=subprocess.DEVNULL)
        )
        until(lambda: search.file(1, "result.json").exists(), 120)
        until(lambda: text_of(search.file(2, "reports.csv")).count("\n") >= 4, 120)
        sent = search.directory / "batches/00000001/files/00000003/files/step"
        until(lambda: int(text_of(sent) or 0) >= 3, 120)
        assert not search.file(2, "result.json").exists(), "results arrive one by one"
        first.close()  # kills all its processes
        (search.notes / "wait").unlink()
        stack.enter_context(search.worker("host2"))
        assert controller.wait(600) == 0
    assert json.loads(search.file(1, "result.json").read_text())["value"] == 0.25
    for number in (2, 3):
        assert "value" in json.loads(search.file(number, "result.json").read_text())
        assert search.file(number, "files/step").read_text() == str(STEPS)
        [one, two] = search.starts(number)
        assert (one[2], two[2]) == ("host1", "host2")
        assert int(two[1]) >= 3, "it continued from its checkpoint"


def test_a_result_survives_its_worker_and_controller(search: Search) -> None:
    (search.notes / "wait").touch()
    with search.worker("host1"):
        with subprocess.Popen(search.argv(1), stdout=subprocess.DEVNULL) as controller:
            until(lambda: "step 3" in search.noted(1), 120)
            controller.send_signal(signal.SIGKILL)
        (search.notes / "wait").unlink()
        until(lambda: "end" in search.noted(1), 120)
        spool = search.base / "host1" / NAME / "jobs"
        until(lambda: list(spool.glob("*/record/end")), 60)
        assert not search.file(1, "result.json").exists()
    with search.worker("host1"):  # a new one with the same root; the first was killed
        search.run(1)
    search.assert_complete(1)
    assert len(search.starts(1)) == 1


_TASKS = """
import json, os, sys
from pathlib import Path

import spearmint

def work(n):
    return [n, os.environ["HOST_OF_TEST"], Path(os.environ["HIDDEN"], "config.pb").exists()]

if __name__ == "__main__":
    folder = Path(sys.argv[1]) / "tasks"
    with spearmint.executor("CELERY", directory=folder, gpus=0, polling_s=1) as executor:
        print(json.dumps(list(executor.map(work, range(2)))))
"""


def test_functions(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    script = search.directory / "tasks.py"
    script.write_text(_TASKS)
    monkeypatch.setenv("HIDDEN", str(search.directory))
    with search.worker("host1"):
        argv = [SPEARMINT[0], str(script), str(search.directory)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=3000)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[0, "host1", False], [1, "host1", False]]


def test_a_worker_without_the_key_is_named(
    search: Search, redis: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv(FILE, name_broker(tmp_path / "other.toml", url=redis.url))
        worker = search.worker("host1")
    with worker, subprocess.Popen(search.argv(1), stderr=subprocess.PIPE, text=True) as controller:
        _, text = controller.communicate(timeout=3000)
        assert controller.returncode == 1
    assert "no worker can receive files" in text
    assert 'key = "any long random text"' in text
    assert not search.noted(1)


def test_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = RedisWithTls()
    try:
        broker.start()
        search = Search(tmp_path)

        def use(ca: Path, url: str = broker.url) -> None:
            file = name_broker(tmp_path / "broker.toml", url=url, key=KEY, ca=str(ca))
            monkeypatch.setenv(FILE, file)

        use(broker.ca)
        with search.worker("host1"):
            search.run(1)
        search.assert_complete(1)
        for ca, url in (
            (broker.other_ca, broker.url),
            (broker.ca, broker.url.replace("127.0.0.1", "localhost")),
        ):
            use(ca, url)
            done = subprocess.run(
                [*SPEARMINT, "workers"], capture_output=True, text=True, check=False, timeout=300
            )
            assert done.returncode == 1, "another certificate was accepted"
            assert "does not answer" in done.stderr
    finally:
        broker.close()


def test_rabbitmq_with_a_redis_for_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker, files = RabbitMQ(), Redis()
    try:
        broker.start()
        files.start()
        file = tmp_path / "broker.toml"
        monkeypatch.setenv(FILE, name_broker(file, url=broker.url, key=KEY))
        search = Search(tmp_path)
        argv = [*search.argv(1), "--file-transfer=yes"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 2
        assert "RabbitMQ cannot carry files" in done.stderr
        name_broker(file, url=broker.url, key=KEY, files=files.url)
        with search.worker("host1"):
            search.run(1)
        search.assert_complete(1)
    finally:
        broker.close()
        files.close()
