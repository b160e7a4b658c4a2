"""The load sensor: its protocol and its reports."""

from __future__ import annotations

import io
import os
import subprocess
import time
from pathlib import Path

import pytest

from sge_jobs.gpu_state import GpuStatus, Intruder, decode
from sge_jobs.node import child, sensor, uses
from sge_jobs.node.claim import processes
from sge_jobs.node.claim.lock_state import LockState
from sge_jobs.node.claim.locks import Locks
from sge_jobs.node.claim.processes import Process
from sge_jobs.node.claim.record import Record
from sge_jobs.node.gpus import cell_counts, inventory
from sge_jobs.node.gpus import detect as gpus
from sge_jobs.node.gpus.inventory import Gpu, boot_id, read_cache
from tests.sge_jobs.node.claim.shepherds import shepherd

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> sensor.Sensor:
    (tmp_path / "declared").write_text("GPU-a\nGPU-b\n")
    (tmp_path / "run").mkdir(mode=0o755)
    monkeypatch.setattr(cell_counts, "complexes", lambda: "gpu gpu INT <= YES JOB 0 0\n")
    monkeypatch.setattr(sensor, "remove_old", lambda: None)  # the host can have real ones
    monkeypatch.setattr(processes, "ROOT", os.getuid())
    monkeypatch.setattr(cell_counts, "given_gpus", lambda host: 2)
    return sensor.Sensor(
        host="node1",
        cache=str(tmp_path / "run" / "gpus"),
        declared=str(tmp_path / "declared"),
        directory=str(tmp_path / "run" / "locks"),
    )


def serve(made: sensor.Sensor, text: str) -> tuple[list[str], str]:
    answers, errors = io.StringIO(), io.StringIO()
    sensor.serve(made, io.StringIO(text), answers, errors)
    return answers.getvalue().splitlines(), errors.getvalue()


def values(lines: list[str]) -> dict[str, str]:
    return dict(line.removeprefix("node1:").split(":", 1) for line in lines if ":" in line)


def test_each_line_is_answered_until_quit(made: sensor.Sensor, tmp_path: Path) -> None:
    lines, _ = serve(made, "\n\nquit\n\n")
    assert lines[0::5] == ["begin", "begin"]
    assert lines[4::5] == ["end", "end"]
    assert lines[1] == "node1:gpu:2"
    assert [gpu.uuid for gpu in decode(values(lines)["gpu_state"])] == ["GPU-a", "GPU-b"]
    cache = read_cache(str(tmp_path / "run" / "gpus"))
    assert cache is not None
    assert (cache.uuids, cache.per_slot) == (("GPU-a", "GPU-b"), False)
    assert sorted(path.name for path in (tmp_path / "run" / "locks").iterdir()) == [
        "GPU-a",
        "GPU-b",
        "claims",
    ]


def hold(tmp_path: Path, children: list[int], gpu: str = "GPU-b") -> None:
    """Give ``gpu`` to a running job."""
    above = shepherd(children)
    locks = Locks(str(tmp_path / "run" / "locks"), boot_id())
    mine = Record(
        job="7", task="2", user="al ice", boot=boot_id(), since=5, shepherd=above.pid,
        shepherd_started=above.started,
    )  # fmt: skip
    assert locks.claim(1, [gpu], mine)[0] == [gpu]
    locks.close()


def test_a_holder_is_named(made: sensor.Sensor, tmp_path: Path, children: list[int]) -> None:
    hold(tmp_path, children)
    lines, _ = serve(made, "\n")
    assert values(lines)["gpu"] == "2"
    free, held = decode(values(lines)["gpu_state"])
    assert (free.status, held.status) == (GpuStatus.FREE, GpuStatus.HELD)
    assert (held.job, held.task, held.user, held.since) == ("7", "2", "al_ice", 5)


def test_a_host_that_lost_a_gpu_is_offered_for_its_free_ones_only(
    made: sensor.Sensor,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    children: list[int],
) -> None:
    """Otherwise Grid Engine, which counts 3 GPUs, sends a job that goes back to the queue."""
    monkeypatch.setattr(cell_counts, "given_gpus", lambda host: 3)
    hold(tmp_path, children)
    lines, _ = serve(made, "\n")
    assert values(lines)["gpu"] == "1"


def test_files_that_cannot_be_used_block_the_gpus(made: sensor.Sensor, tmp_path: Path) -> None:
    (tmp_path / "run" / "locks").write_text("in the way")
    reported = values(serve(made, "\n")[0])
    assert reported["gpu"] == "0"
    assert {use.status for use in decode(reported["gpu_state"])} == {GpuStatus.BLOCKED}


def test_an_error_does_not_end_it_and_reports_nothing(
    made: sensor.Sensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made, "_foreign", lambda *_: 1 / 0)
    lines, errors = serve(made, "\n\n")
    assert lines == ["begin", "end"] * 2
    assert "ZeroDivisionError" in errors


def test_a_host_whose_gpus_cannot_be_found_offers_none_until_they_are(
    made: sensor.Sensor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "declared").write_text("gpus: 2\n")
    assert values(serve(made, "\n")[0]) == {"gpu": "0", "gpu_share": "0", "gpu_state": "1"}
    (tmp_path / "declared").write_text("count = 1\n")
    assert values(serve(made, "\n")[0])["gpu"] == "0"  # not every report looks for GPUs
    monkeypatch.setattr(made, "_find_at", 0.0)
    assert values(serve(made, "\n")[0])["gpu"] == "1"


def test_a_lost_gpu_is_missed_soon_and_the_master_seldom_asked(
    made: sensor.Sensor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, asked = [1000.0], []

    def ask() -> str:
        asked.append(now[0])
        return "gpu gpu INT <= YES JOB 0 0\n"

    monkeypatch.setattr(cell_counts, "complexes", ask)
    monkeypatch.setattr(sensor.time, "monotonic", lambda: now[0])
    assert values(serve(made, "\n")[0])["gpu"] == "2"
    (tmp_path / "declared").write_text("GPU-b\n")
    now[0] += 30
    assert values(serve(made, "\n")[0])["gpu_state"] == "1+0/GPU-b/f////"
    assert len(asked) == 1
    now[0] += 300
    serve(made, "\n")
    assert len(asked) == 2


def test_the_cache_is_not_written_again_when_nothing_changed(
    made: sensor.Sensor, tmp_path: Path
) -> None:
    serve(made, "\n")
    first = (tmp_path / "run" / "gpus").stat().st_ino
    serve(made, "\n")
    assert (tmp_path / "run" / "gpus").stat().st_ino == first


def process(pid: int, name: str = "python3", group: int = 0) -> Process:
    groups = frozenset([group] if group else [])
    return Process(pid=pid, name=name, parent=1, groups=groups, started=9, uid=1000)


RECORD = Record(
    job="7", user="alice", boot="b", since=5, group=20001, shepherd=6, shepherd_started=9
)
GPU = Gpu(index=0, uuid="GPU-a")


@pytest.mark.parametrize(
    ("state", "foreign", "status", "free"),
    [
        (LockState(uuid="GPU-a"), (), GpuStatus.FREE, 2),
        (LockState(uuid="GPU-a", holders=[RECORD]), (), GpuStatus.HELD, 2),
        (
            LockState(uuid="GPU-a", holders=[RECORD], ended=[RECORD], processes=[process(9)]), (),
            GpuStatus.OUTLIVED, 1,
        ),
        (LockState(uuid="GPU-a", problem="no plain file"), (), GpuStatus.BLOCKED, 1),
        (LockState(uuid="GPU-a"), (Intruder(pid=4, foreign=True),), GpuStatus.BLOCKED, 1),
    ],
)  # fmt: skip
def test_the_scheduler_hears_of_fewer_gpus_only_when_one_cannot_be_given(
    state: LockState, foreign: tuple[Intruder, ...], status: GpuStatus, free: int
) -> None:
    use = uses.use_of(GPU, state, foreign)
    other = uses.use_of(Gpu(index=1, uuid="GPU-b"), LockState(uuid="GPU-b"), ())
    assert use.status is status
    assert uses.for_scheduler([use, other]) == free


def proc_of(path: Path, pid: int, group: str, parent: int = 1, name: str = "python3") -> None:
    """Write the files of a process in /proc."""
    (path / str(pid)).mkdir(parents=True)
    (path / str(pid) / "stat").write_text(f"{pid} ({name}) S {parent} " + "0 " * 17 + "9 0 0\n")
    uid = 0 if name == "sge_shepherd" else 1000
    (path / str(pid) / "status").write_text(f"Name:\tx\nUid:\t{uid}\t1\nGroups:\t{group}\nEnd:\n")


def test_a_process_is_an_intruder_unless_it_is_of_the_job(tmp_path: Path) -> None:
    proc_of(tmp_path, 9, "100")
    proc_of(tmp_path, 8, "100 20001")
    proc_of(tmp_path, 7, "", parent=6)  # belongs to another task of a parallel job
    proc_of(tmp_path, 6, "", name="sge_shepherd")
    (tmp_path / "6" / "cwd").symlink_to("/spool/active_jobs/7.1/1.node1")
    proc_of(tmp_path, 4, "", parent=3)  # belongs to a job without GPUs
    proc_of(tmp_path, 3, "", name="sge_shepherd")
    (tmp_path / "3" / "cwd").symlink_to("/spool/active_jobs/8.2")
    states = [LockState(uuid="GPU-a", holders=[RECORD]), LockState(uuid="GPU-b")]

    def intruders(pid: int, gpu: str, name: str = "python3") -> list[tuple[str, bool]]:
        one = gpus.GpuProcess(uuid=gpu, pid=pid, name=name)
        found = uses.intruders([one], states, str(tmp_path)).get(gpu, ())
        return [(each.job, each.foreign) for each in found]

    assert intruders(9, "GPU-a") == [("", True)]
    assert intruders(8, "GPU-a") == intruders(7, "GPU-a") == []
    assert intruders(8, "GPU-b") == intruders(7, "GPU-b") == [("7", True)]
    assert intruders(4, "GPU-a") == [("8.2", True)]
    assert intruders(5, "GPU-a") == []  # it has ended
    assert intruders(9, "GPU-a", "nvidia-cuda-mps-server") == []


def test_a_query_that_hangs_or_crashes_gives_nothing() -> None:
    assert child.in_child(lambda: "x" * 100000) == "x" * 100000
    assert child.in_child(lambda: str(time.sleep(9999)), 0.2) is None
    assert child.in_child(lambda: os._exit(3)) is None


def test_a_child_that_was_killed_is_no_zombie_for_ever() -> None:
    assert sensor.in_child(lambda: str(time.sleep(60)), 0.1) is None
    killed = child._left[-1]
    assert os.waitid(os.P_PID, killed, os.WEXITED | os.WNOWAIT) is not None  # it has ended
    assert sensor.in_child(lambda: "x") == "x"
    assert killed not in child._left
    with pytest.raises(ChildProcessError):
        os.waitpid(killed, os.WNOHANG)


def test_the_program_answers_as_grid_engine_asks() -> None:
    done = subprocess.run(
        [str(ROOT / "sge_jobs" / "node" / "gpu-sensor")],
        check=False, input="quit\n", capture_output=True, text=True,
        env={"PATH": "/usr/bin:/bin", "HOST": "node1"},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "")


def test_the_places_are_those_of_the_starter() -> None:
    assert inventory.CACHE.startswith(inventory.RUN_DIRECTORY)


def test_links_are_looked_up_once_and_when_the_gpus_change(
    made: sensor.Sensor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look() -> dict[str, str]:
        monkeypatch.setattr(made, "_find_at", 0.0)
        serve(made, "\n")
        known = read_cache(str(tmp_path / "run" / "gpus"))
        assert known is not None
        return known.links

    (tmp_path / "declared").write_text("GPU-a\nGPU-b\nisland = 0 1\n")
    assert look() == {"GPU-a": "01", "GPU-b": "10"}
    (tmp_path / "declared").write_text("GPU-a\nGPU-b\nisland = 0\n")
    assert look() == {"GPU-a": "01", "GPU-b": "10"}
    (tmp_path / "declared").write_text("GPU-a\nGPU-c\nisland = 0\n")
    assert look() == {"GPU-a": "04", "GPU-c": "40"}
    (tmp_path / "declared").write_text("GPU-a\nGPU-c\nisland = 0 1\n")
    monkeypatch.setattr(made, "_link_at", 0.0)  # after some minutes
    assert look() == {"GPU-a": "01", "GPU-c": "10"}
    monkeypatch.setattr(made, "_link_at", 0.0)
    monkeypatch.setattr(sensor.topology, "find_links", lambda *_: 1 / 0)
    assert look() == {}
