"""What every way to bring back results promises, whatever is killed, repeated, cut or full."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spearmint.errors import DriverUnreachable
from tests.spearmint.trial.transport.ways import WAYS, FilesByRedis, Transfer, Way, kill
from tests.waiting import until

KILLS = int(os.environ.get("KILLS", "10"))
STEPS = 10
CODE = f"""
import os, time
from pathlib import Path
import spearmint

def main(job_id, params):
    here = Path(os.environ["SPEARMINT_TRIAL_DIR"])
    path = here / "step"
    first = int(path.read_text()) if path.exists() else 0
    for step in range(first, {STEPS}):
        spearmint.report(step, step / 2)
        print("step", step, flush=True)
        (here / "new").write_text(str(step + 1))
        (here / "new").replace(path)
        time.sleep(0.02)
    return 0.5
"""
LARGE = """
import os
def main(job_id, params):
    block = bytes(range(256)) * 4096
    for _ in range(100):
        os.write(1, block)
    return 0.5
"""
PATIENT = """
import os, time
def main(job_id, params):
    open({root!r} + "/started", "w").close()
    while not os.path.exists({root!r} + "/go"):
        time.sleep(0.01)
    return 0.5
"""
Make = Callable[..., Way]


@pytest.fixture(
    params=[
        pytest.param(name, marks=[pytest.mark.celery] if way is FilesByRedis else [])
        for name, way in WAYS.items()
    ]
)
def make(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Make]:
    made: list[Way] = []

    def create(code: str = CODE, root: Path | None = None) -> Way:
        (tmp_path / "elsewhere").mkdir()
        made.append(WAYS[request.param](root or tmp_path / "e", code, tmp_path / "elsewhere"))
        return made[-1]

    yield create
    for way in made:
        way.close()


def run(way: Way) -> None:
    """Run the trial to its end."""
    with way.start() as job:
        until(lambda: way.receive() or job.poll() is not None, 60)
    way.bring_back()


def content(way: Way) -> dict[str, object]:
    """Return what came back; the seconds of a result differ."""
    files = way.folder.files
    refused = "another process is running this trial\n"
    return {
        "result": json.loads(way.folder.result.read_text()),
        "reports": way.folder.reports.read_text(),
        "output": way.output.read_text().replace(refused, ""),
        "files": {path.name: path.read_text() for path in files.iterdir()},
    }


def assert_complete(way: Way, *, was_lost: bool = False) -> None:
    found = content(way)
    assert found["result"]["value"] == 0.5  # type: ignore[index]
    assert found["files"] == {"step": str(STEPS)}
    rows = dict(line.split(",") for line in str(found["reports"]).splitlines())
    assert rows == {str(step): str(step / 2) for step in range(STEPS)}
    steps = set(str(found["output"]).splitlines())
    every = {f"step {step}" for step in range(STEPS)}
    # A host that was lost had printed, and saved, but perhaps not sent.
    may_lack = every if was_lost and not way.shares_files else set()
    assert every - may_lack <= steps <= every


@pytest.mark.parametrize("seed", range(max(1, KILLS // 5)))
@pytest.mark.timeout(500)
def test_killed_at_any_instant(make: Make, seed: int) -> None:
    way, draw = make(), random.Random(seed)
    for _ in range(4):
        with way.start() as job:
            deadline = time.monotonic() + draw.uniform(0, 1.5)
            while time.monotonic() < deadline:
                way.receive()
                time.sleep(0.02)
            kill(job)
        way.receive()
        if way.folder.result.exists():
            assert_complete(way, was_lost=True)  # a result is never there alone
    run(way)
    assert_complete(way, was_lost=True)


def test_delivered_twice_and_out_of_order(make: Make) -> None:
    way = make()
    run(way)
    assert_complete(way)
    before = content(way)
    for seed in range(3):
        way.deliver_again(random.Random(seed))
        assert content(way) == before


def test_two_deliveries_at_the_same_time(make: Make) -> None:
    way = make()
    if isinstance(way, Transfer):
        pytest.skip("HTCondor runs a job once at a time")
    job = way.start()
    way.deliver_again(random.Random(0))
    job.wait()
    way.receive()
    assert_complete(way)
    lines = way.output.read_text().splitlines()
    assert lines.count("step 3") == 1


def test_cut_and_damaged(make: Make) -> None:
    way = make()
    way.deliver_damaged(random.Random(0))
    assert not way.folder.result.exists()
    run(way)
    before = content(way)
    for seed in range(5):
        way.deliver_damaged(random.Random(seed))
        assert content(way) == before


def test_a_hundred_megabytes_of_output(make: Make) -> None:
    way = make(LARGE)
    run(way)
    assert json.loads(way.folder.result.read_text())["value"] == 0.5
    with way.output.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    assert found == hashlib.sha256(bytes(range(256)) * 4096 * 100).hexdigest()
    if isinstance(way, FilesByRedis):
        assert way.largest < 30 << 20, "more than some pieces were in Redis at the same time"


def fill(path: Path) -> None:
    """Write a file until the disk is full."""
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)


@pytest.mark.mount
def test_the_disk_of_the_receiver_is_full(make: Make, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)], check=True)
    try:
        way = make(PATIENT.format(root=str(tmp_path)), disk / "e")
        job = way.start()
        until(lambda: (tmp_path / "started").exists(), 60)
        fill(disk / "filler")
        (tmp_path / "go").touch()
        job.wait()
        with contextlib.suppress(OSError, DriverUnreachable):  # the controller retries
            way.receive() if isinstance(way, FilesByRedis) else way.bring_back()
        (disk / "filler").unlink()
        way.bring_back()
        assert json.loads(way.folder.result.read_text())["value"] == 0.5
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)
