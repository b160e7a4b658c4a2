"""The job on a host without the experiment's directory: the agent, and what it needs."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spearmint.errors import InputError
from spearmint.layout import TrialFolder, write_json
from spearmint.trial.transport import agent, inputs
from spearmint.trial.transport.inputs import (
    CODE,
    CONTENT,
    EXPERIMENT,
    code_archive,
    experiment_archives,
)
from spearmint.trial.transport.mailroom import OUTBOX, SPEC, STATE, Address, Mailroom
from spearmint.trial.transport.parcel import open_parcel
from tests.spearmint.trial.transport.proxy import proxy_of
from tests.waiting import text_of, until

TOKEN = "0123456789ab"  # noqa: S105
WRAPPER = """
import os, signal, sys, time
from pathlib import Path
import spearmint

def main(job_id, params):
    step = Path(os.environ["SPEARMINT_TRIAL_DIR"]) / "step"
    first = int(step.read_text()) if step.exists() else 0
    here = Path(__file__).resolve()
    print("runs in", here.parent.parent.name)
    if "deaf" in params:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for number in range(first, 3):
        spearmint.report(number, number / 2)
        step.write_text(str(number + 1))
        print("step", number, flush=True)
        while number == 1 and first == 0 and "waits" in params:
            time.sleep(0.05)
    return 0.5
"""


class Experiment:
    """An experiment, the mailbox of its trial, and the working directory of a job."""

    def __init__(self, root: Path) -> None:
        self.root = root / "an 'experiment'"
        self.folder = TrialFolder(self.root / "jobs" / "00000001")
        self.folder.path.mkdir(parents=True)
        (self.root / "wrapper.py").write_text(WRAPPER)
        self.output, self.transfer = self.root / "out.txt", self.root / ".spearmint" / "transfer"
        self.host = root / "host"
        self.done, self.has_cache = self.root / "done", False

    def submit(self, *params: str) -> Path:
        given = {name: {"kind": "ENUM", "values": ["x"]} for name in params}
        content = {"key": "k", "job_id": 1, "directory": str(self.root), "name": "wrapper"}
        write_json(self.folder.spec, {**content, "language": "PYTHON", "params": given})
        self.transfer.mkdir(parents=True, exist_ok=True)
        archives = {
            CODE: code_archive(self.transfer),
            **experiment_archives(self.root, self.transfer, has_cache=self.has_cache),
        }
        self.room = Mailroom(self.transfer)
        folder, output, done = str(self.folder.path), str(self.output), str(self.done)
        address = Address(folder=folder, output=output, done=done, key="k")
        self.box = self.room.open_box(TOKEN, address, archives)
        return self.box

    def start(self, chirp: Path | None = None, run: int = 1) -> subprocess.Popen[bytes]:
        """Start the job as HTCondor does: its files are copied to an empty directory."""
        outbox = self.host / OUTBOX
        kept = [(path.name, path.read_bytes()) for path in outbox.glob("*")]
        shutil.rmtree(self.host, ignore_errors=True)
        outbox.mkdir(parents=True)
        for name, content in kept:
            (outbox / name).write_bytes(content)
        for name in (SPEC, STATE, CODE, EXPERIMENT):
            shutil.copy2(self.box / name, self.host)
        data = next(self.box.glob("data-*"), None)
        (self.host / "ad").write_text(f"NumShadowStarts = {run}\n")
        with (self.host / "output.txt").open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "spearmint.trial.transport.agent"],
                cwd=self.host,
                stdout=output,
                stderr=output,
                env={
                    "PYTHONPATH": str(self.host / CODE),
                    "SPEARMINT_RERUN_EXIT_CODE": "99",
                    "SPEARMINT_TRANSPORT_DONE": str(self.done),
                    "_CONDOR_JOB_AD": str(self.host / "ad"),
                    **({"SPEARMINT_TRANSPORT_DATA": data.name} if data else {}),
                    "SPEARMINT_CACHE": str(self.root / "cache"),
                    **({"_CONDOR_CHIRP_CONFIG": str(chirp)} if chirp else {}),
                },
            )

    def bring_back(self) -> None:
        """Copy the outbox back, as HTCondor does when a job exits."""
        shutil.copytree(self.host / OUTBOX, self.box / OUTBOX, dirs_exist_ok=True)
        self.receive()

    def receive(self) -> None:
        self.room.receive({TOKEN})

    def result(self) -> dict[str, object]:
        content: dict[str, object] = json.loads(self.folder.result.read_text())
        return content


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    return Experiment(tmp_path)


def test_a_trial_runs_without_the_directory(experiment: Experiment) -> None:
    experiment.submit()
    assert experiment.start().wait() == 0
    experiment.bring_back()
    assert experiment.result()["value"] == 0.5
    steps = "step 0\nstep 1\nstep 2\n"
    assert experiment.output.read_text() == f"runs in host\n{steps}"
    assert experiment.folder.reports.read_text() == "0,0.0\n1,0.5\n2,1.0\n"
    assert (experiment.folder.files / "step").read_text() == "3"


def test_data_is_fetched_once_for_all_trials_of_a_host(
    experiment: Experiment, tmp_path: Path
) -> None:
    (experiment.root / "data.bin").write_bytes(os.urandom(3 << 20))
    with (experiment.root / "wrapper.py").open("a") as file:
        file.write("\nassert len(Path(__file__).with_name('data.bin').read_bytes()) == 3 << 20\n")
    experiment.has_cache = True
    box = experiment.submit()
    with proxy_of(box) as proxy:
        for run in (1, 2):
            shutil.rmtree(experiment.host, ignore_errors=True)
            chirp = proxy.configuration(tmp_path / "chirp")
            assert experiment.start(chirp, run).wait() == 0, text_of(experiment.host / "output.txt")
            experiment.receive()
            assert experiment.result()["value"] == 0.5
            experiment.folder.result.unlink()
    (data,) = box.glob("data-*")
    assert proxy.read == [data.name]
    assert experiment.output.read_text().count("of data for this host") == 1


def test_without_a_proxy_data_cannot_be_fetched(experiment: Experiment) -> None:
    (experiment.root / "data.bin").write_bytes(os.urandom(1 << 20))
    experiment.has_cache = True
    experiment.submit()
    assert experiment.start().wait() == 99


def test_an_evicted_trial_continues_elsewhere(experiment: Experiment, tmp_path: Path) -> None:
    box = experiment.submit("waits", "deaf")
    with proxy_of(box) as proxy:
        chirp = proxy.configuration(tmp_path / "chirp")
        with experiment.start(chirp) as job:
            until(lambda: experiment.receive() or "step 1" in text_of(experiment.output), 60)
            assert experiment.folder.runner.exists()
            assert not experiment.folder.result.exists()
            job.send_signal(signal.SIGTERM)
            assert job.wait() == -signal.SIGKILL  # it ignores SIGTERM
        assert not experiment.done.exists()
        with experiment.start(chirp, run=2) as job:
            assert job.wait() == 0
    assert experiment.done.exists()
    experiment.receive()
    assert experiment.result()["value"] == 0.5
    lines = [line for line in text_of(experiment.output).splitlines() if line.startswith("step")]
    assert lines == ["step 0", "step 1", "step 2"]


def test_files_that_cannot_be_packed_in_time_do_not_delay_the_rest(experiment: Experiment) -> None:
    experiment.submit("waits")
    with experiment.start() as job:
        until(lambda: "step 1" in text_of(experiment.host / "output.txt"), 60)
        (experiment.host / "ad").write_text("JobMaxVacateTime = 0\n")
        job.send_signal(signal.SIGTERM)
    experiment.bring_back()
    assert "step 1" in text_of(experiment.output)
    assert not experiment.folder.files.exists()


def test_a_lost_host_costs_the_time_since_the_last_delivery(
    experiment: Experiment, tmp_path: Path
) -> None:
    box = experiment.submit("waits")
    with proxy_of(box) as proxy:
        chirp = proxy.configuration(tmp_path / "chirp")
        with experiment.start(chirp) as job:
            step = experiment.folder.files / "step"
            until(lambda: experiment.receive() or text_of(step) == "2", 60)
            for pid in _children(job.pid):
                os.kill(pid, signal.SIGKILL)
            job.kill()
        shutil.rmtree(experiment.host)
        assert experiment.start(chirp, run=2).wait() == 0
    experiment.bring_back()
    assert experiment.result()["value"] == 0.5
    assert text_of(experiment.output).count("step 1\n") == 1


@pytest.mark.parametrize("name", [SPEC, STATE, EXPERIMENT])
def test_an_input_that_is_truncated_asks_for_a_rerun(experiment: Experiment, name: str) -> None:
    path = experiment.submit() / name
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:-10])
    assert experiment.start().wait() == 99


@pytest.mark.parametrize(
    ("job", "machine", "grace_s"),
    [
        ("JobMaxVacateTime = 120", "", 110),
        ("JobMaxVacateTime = 3600", "MachineMaxVacateTime = 600", 590),
        ("JobMaxVacateTime = 4", "", 2),
        ("JobMaxVacateTime = 10 * 60", "", 10),
        ("", "", 10),
    ],
)
def test_the_time_for_a_checkpoint_is_that_of_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: str, machine: str, grace_s: float
) -> None:
    for variable, text in {"_CONDOR_JOB_AD": job, "_CONDOR_MACHINE_AD": machine}.items():
        (tmp_path / variable).write_text(f"MyType = x\n{text}\nNumShadowStarts = 1\n")
        monkeypatch.setenv(variable, str(tmp_path / variable))
    assert agent._grace_s() == grace_s


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


# The experiment's files


def test_only_files_of_the_user_are_sent(tmp_path: Path) -> None:
    for name in (
        *("wrapper.py", "lib/helper.py", "data/jobs/x", "a, b.txt"),
        *("spearmint.db", "spearmint.db-wal", "trace.csv", "best_job_and_result.txt"),
        *("jobs/00000001/trial.json", "output/00000001.out", ".spearmint/lock", "report/x.html"),
        *("lib/__pycache__/helper.pyc", ".git/config"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "lib" / "up").symlink_to(tmp_path)
    (tmp_path / "outside").symlink_to("/etc/hostname")
    (tmp_path / "gone").symlink_to("/nowhere")
    sent = {name.removeprefix("content/") for name, _ in inputs._files(tmp_path)}
    assert sent == {"wrapper.py", "lib/helper.py", "data/jobs/x", "a, b.txt", "outside"}


def test_folders_that_link_to_each_other_are_sent_once_per_way(tmp_path: Path) -> None:
    names = "abc"
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_text("x")
        for other in names.replace(name, ""):
            (tmp_path / name / other).symlink_to(tmp_path / other)
    found = itertools.islice(inputs._files(tmp_path), 1000)
    sent = {name.removeprefix("content/") for name, _ in found}
    ways = [way for count in (1, 2, 3) for way in itertools.permutations(names, count)]
    assert sent == {"/".join((*way, "x")) for way in ways}


def archive(root: Path, directory: Path) -> Path:
    return experiment_archives(root, directory, has_cache=False)[EXPERIMENT]


def test_large_files_and_folders_of_many_files_are_data(tmp_path: Path) -> None:
    root, transfer = tmp_path / "experiment", tmp_path / "transfer"
    for folder in (root / "images", transfer):
        folder.mkdir(parents=True)
    (root / "wrapper.py").write_text("1")
    (root / "data.csv").write_bytes(b"x" * (64 << 10))
    for number in range(40):
        (root / "images" / f"{number}.png").write_bytes(b"x" * (40 << 10))
    first = experiment_archives(root, transfer, has_cache=True)
    with open_parcel(first.pop(EXPERIMENT)) as small:
        assert small is not None
        small.extract_files(tmp_path / "small", CONTENT)
    assert [path.name for path in (tmp_path / "small").iterdir()] == ["wrapper.py"]
    (root / "wrapper.py").write_text("22")
    again = experiment_archives(root, transfer, has_cache=True)
    assert first == {name: path for name, path in again.items() if name != EXPERIMENT}
    (root / "data.csv").unlink()
    (root / "images" / "0.png").write_bytes(b"y")
    changed = experiment_archives(root, transfer, has_cache=True)
    assert not changed.keys() & first.keys()
    assert len(list(transfer.iterdir())) == 2


def test_an_archive_is_written_again_if_a_file_changes(tmp_path: Path) -> None:
    root, transfer = tmp_path / "experiment", tmp_path / "transfer"
    root.mkdir()
    transfer.mkdir()
    (root / "wrapper.py").write_text("1")
    first = archive(root, transfer)
    assert archive(root, transfer) == first
    (root / "wrapper.py").write_text("22")
    assert archive(root, transfer) != first
    assert not first.exists()


def test_a_name_that_is_not_utf8_is_sent(tmp_path: Path) -> None:
    root = tmp_path / "e"
    root.mkdir()
    name = os.fsdecode(b"caf\xe9")
    (root / name).write_text("x")
    with open_parcel(archive(root, tmp_path)) as parcel:
        assert parcel is not None
        parcel.extract_files(tmp_path / "host", CONTENT)
    assert (tmp_path / "host" / name).read_text() == "x"


def test_too_many_bytes_are_refused(tmp_path: Path) -> None:
    with (tmp_path / "data").open("wb") as file:
        file.truncate(3 << 30)
    with pytest.raises(InputError, match=r"3\.0 GiB"):
        archive(tmp_path, tmp_path)
