"""How busy the GPUs of a trial are: real runners and monitors, and a fake NVML with a state."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from spearmint.layout import PROCESSES, TrialFolder, read_json, write_json
from spearmint.trial.attempts import add_attempt, read_attempts
from spearmint.trial.gpu_use import gpu_use_of
from spearmint.trial.ranks.processes import is_running
from tests.spearmint.trial.ranks.ranks import STAND_IN
from tests.waiting import until

FAKE = Path(__file__).parent / "fake"
IDLE_HALF = {"uuid": "GPU-aa11", "busy": [0, 0, 50], "used": [10, 900, 300], "total": 1000}
FULL = {"uuid": "GPU-bb22", "busy": [0, 0, 100], "used": [20], "total": 2000}
OF_OTHERS = {"uuid": "GPU-cc33", "busy": [7], "used": [30], "total": 1000}
WAITS = """
import json, os, time

def main(job_id, params):
    while True:
        with open(os.environ["FAKE_GPUS"]) as file:
            gpus = json.load(file)["gpus"]
        if max(gpu.get("samples", 0) for gpu in gpus) >= LEAST:
            break
        time.sleep(0.01)
    AFTER
    return 1.5
"""


class Host:
    """A host with GPUs, and a trial on it."""

    def __init__(self, root: Path, *gpus: dict[str, Any], **state: object) -> None:
        self.root, self.file, self.output = root, root / "gpus.json", ""
        self.folder = TrialFolder(root / "jobs" / "00000007")
        self.folder.path.mkdir(parents=True)
        self.file.write_text(json.dumps({"gpus": gpus, **state}))

    @property
    def state(self) -> dict[str, Any]:
        return dict(json.loads(self.file.read_text()))

    def start(
        self, visible: str, code: str = WAITS, after: str = "pass", least: int = 6, **more: str
    ) -> subprocess.Popen[str]:
        text = code.replace("AFTER", after).replace("LEAST", str(least))
        (self.root / "wrapper.py").write_text(text)
        named = {"directory": str(self.root), "name": "wrapper", "language": "PYTHON"}
        ranks = {PROCESSES: int(more.pop("ranks"))} if "ranks" in more else {}
        write_json(self.folder.spec, {"key": "k", "job_id": 7, "params": {}, **named, **ranks})
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(FAKE), str(STAND_IN)]),
            "FAKE_GPUS": str(self.file),
            "CUDA_VISIBLE_DEVICES": visible,
            "SPEARMINT_GPU_SAMPLE_S": "0.01",
            **more,
        }
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "spearmint.trial.runner", str(self.folder.path)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, visible: str, *args: str, **more: Any) -> dict[str, Any]:
        """Run a trial to its end; return its result."""
        process = self.start(visible, *args, **more)
        self.output, _ = process.communicate()
        assert process.returncode == 0, self.output
        return read_json(self.folder.result) or {}

    def use(self) -> dict[str, Any]:
        """Return what is stored of the last job, after the last write of its monitor."""
        until(lambda: not self.monitor_runs())
        return dict(read_attempts(self.folder)[-1]["gpu_use"])

    def monitor_runs(self) -> bool:
        pid = self.state.get("monitor")
        return pid is not None and is_running(pid)


def test_the_gpus_of_a_trial_are_sampled_and_no_others(tmp_path: Path) -> None:
    host = Host(tmp_path, OF_OTHERS, IDLE_HALF, FULL)
    assert host.run("1,GPU-bb")["value"] == 1.5
    use = host.use()
    assert [gpu["gpu"] for gpu in use["gpus"]] == ["1", "GPU-bb"]
    assert [gpu["busy"] for gpu in use["gpus"]] == [0.5, 1.0]  # from the first kernel on
    assert use["gpu_busy"] == 0.75
    assert [gpu["memory_mib"] for gpu in use["gpus"]] == [900, 20]
    assert [gpu["memory_total_mib"] for gpu in use["gpus"]] == [1000, 2000]
    assert 0 <= use["first_use_s"] <= use["seconds"]
    assert use["shared"] is False
    assert "samples" not in host.state["gpus"][0]


def test_a_trial_that_never_uses_its_gpu_was_not_busy(tmp_path: Path) -> None:
    host = Host(tmp_path, {**IDLE_HALF, "busy": [0]})
    host.run("0", CUDA_MPS_PIPE_DIRECTORY=str(tmp_path))
    assert host.use()["gpu_busy"] == 0.0
    assert host.use()["first_use_s"] is None
    assert host.use()["shared"] is True


def test_a_slice_that_measures_no_utilisation_has_memory_only(tmp_path: Path) -> None:
    host = Host(tmp_path, {"uuid": "MIG-1", "used": [5], "total": 10})
    host.run("MIG-1")
    assert host.use()["gpu_busy"] is None
    assert host.use()["gpus"] == [
        {"gpu": "MIG-1", "busy": None, "memory_mib": 5, "memory_total_mib": 10}
    ]


@pytest.mark.parametrize(
    ("visible", "more"),
    [("", {}), ("-1", {}), ("0", {"SPEARMINT_GPU_SAMPLE_S": "0"}), ("0", {"PYTHONPATH": ""})],
)
def test_no_monitor_starts_without_a_gpu_or_without_nvml(
    tmp_path: Path, visible: str, more: dict[str, str]
) -> None:
    host = Host(tmp_path, IDLE_HALF)
    assert host.run(visible, least=0, **more)["value"] == 1.5
    assert "monitor" not in host.state
    assert read_attempts(host.folder)[-1].get("gpu_use") is None


@pytest.mark.parametrize(
    ("visible", "state", "more"),
    [
        ("0", {"no_driver": True}, {}),
        ("5", {}, {}),
        ("GPU-zz", {}, {}),
        ("0", {}, {"SPEARMINT_GPU_SAMPLE_S": "often"}),
    ],
)
def test_a_gpu_that_cannot_be_measured_fails_no_trial(
    tmp_path: Path, visible: str, state: dict[str, object], more: dict[str, str]
) -> None:
    host = Host(tmp_path, IDLE_HALF, **state)
    assert host.run(visible, least=0, **more) == {**host.run(visible), "value": 1.5}
    assert read_attempts(host.folder)[-1].get("gpu_use") is None


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_driver_that_hangs_delays_no_trial_and_leaves_no_process(
    tmp_path: Path, is_killed: bool
) -> None:
    host = Host(tmp_path, IDLE_HALF, hangs=True)
    after = "while not os.path.exists('go'): time.sleep(0.01)"
    process = host.start("0", after=after, least=0)
    until(lambda: host.state.get("monitor"))
    assert host.monitor_runs()
    process.kill() if is_killed else (tmp_path / "go").touch()
    process.communicate()
    assert ((read_json(host.folder.result) or {}).get("value") == 1.5) is not is_killed
    until(lambda: not host.monitor_runs())


def test_a_trial_that_is_killed_keeps_what_was_measured(tmp_path: Path) -> None:
    host = Host(tmp_path, IDLE_HALF)
    # Forks of the trial that remain have its side of the socket.
    process = host.start("0", after="os.fork() and time.sleep(600); time.sleep(600)")
    until(lambda: host.state["gpus"][0].get("samples", 0) > 20)
    family = psutil.Process(process.pid).children()
    process.send_signal(signal.SIGKILL)
    until(lambda: not host.monitor_runs())
    for fork in family:
        fork.kill()
    process.communicate()
    assert host.use()["gpu_busy"] == 0.5
    add_attempt(host.folder, "killed")
    host.folder.runner.unlink()
    (attempt,) = read_attempts(host.folder)
    assert attempt["gpu_use"]["gpu_busy"] == 0.5


def test_the_monitor_of_a_lost_job_does_not_count_for_the_next(tmp_path: Path) -> None:
    host = Host(tmp_path, IDLE_HALF)
    host.run("0")
    assert gpu_use_of(host.folder, 1.0) is None
    host.folder.gpu_use.write_text('{"start": 1.0, "gpu_busy": "much"}')
    assert gpu_use_of(host.folder, 1.0) is None
    host.folder.gpu_use.write_text('{"start": 1.')
    assert gpu_use_of(host.folder, 1.0) is None


@pytest.mark.parametrize(
    "after",
    [
        "os.kill(json.load(open(os.environ['FAKE_GPUS']))['monitor'], 9)",
        "os.chdir('/'); os.environ.clear()",
    ],
)
def test_whatever_the_trial_does_to_its_monitor_it_succeeds(tmp_path: Path, after: str) -> None:
    host = Host(tmp_path, IDLE_HALF)
    assert host.run("0", after=after)["value"] == 1.5
    until(lambda: not host.monitor_runs())


def test_files_of_the_trial_with_the_number_of_the_socket_stay_open(tmp_path: Path) -> None:
    host = Host(tmp_path, IDLE_HALF)
    after = (
        "import atexit, socket; os.closerange(3, 100); "
        "pairs = [socket.socketpair() for _ in range(50)]; "
        "sent = lambda: [end.send(b'.') for pair in pairs for end in pair]; "
        "atexit.register(lambda: print('sent', sum(sent())))"
    )
    assert host.run("0", after=after)["value"] == 1.5
    assert "sent 100" in host.output


def test_the_trial_meets_no_child_that_it_did_not_start(tmp_path: Path) -> None:
    host = Host(tmp_path, IDLE_HALF)
    after = "import psutil; assert psutil.Process().children() == []"
    assert host.run("0", after=after)["value"] == 1.5


def test_the_gpus_of_all_ranks_are_sampled_without_their_locks(tmp_path: Path) -> None:
    host = Host(tmp_path, IDLE_HALF, FULL)
    files = 'f\'/proc/{json.load(open(os.environ["FAKE_GPUS"]))["monitor"]}/fd\''
    after = f"names = [os.readlink({files} + '/' + n) for n in os.listdir({files})]; "
    after += "assert not [name for name in names if name.endswith('/lock')], names"
    result = host.run("0,1", ranks="2", after=after)
    assert result.get("value") == 1.5, result
    assert host.use()["gpu_busy"] == 0.75


def test_a_trial_without_gpus_imports_nothing_for_them(tmp_path: Path) -> None:
    host = Host(tmp_path, IDLE_HALF)
    after = "import sys; assert not [name for name in sys.modules if 'gpu_use' in name]"
    assert host.run("", after=after, least=0)["value"] == 1.5
