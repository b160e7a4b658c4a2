"""The example for Luigi: after a kill of its worker, the same command ends the day."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import commands
from tests.docs.tools import ROOT
from tests.waiting import until

pytest.importorskip("luigi", reason="needs luigi: pip install luigi")


PATIENCE_S = 500.0
GATES = """

def _wait(name):
    from pathlib import Path
    import time

    while Path("/proc/{test}").exists():
        if (Path({root!r}) / name).exists():
            return
        time.sleep(0.02)
    raise TimeoutError(name)


_main, _final = main, final


def main(job_id, params):
    _wait("trials")
    return _main(job_id, params)


def final(job_id, params, model_dir):
    _wait("finals")
    return _final(job_id, params, model_dir)
"""


class Pipeline:
    """A copy of the example, whose trials and final trainings wait until a file exists."""

    def __init__(self, root: Path) -> None:
        for name in ("luigi", "regions"):
            shutil.copytree(ROOT / "examples" / name, root / name)
        with (root / "regions/demand.py").open("a") as code:
            code.write(GATES.format(root=str(root), test=os.getpid()))
        self.script, self.models = root / "luigi/pipeline.py", root / "models"
        self.folder = self.models / "de"

    def start(self, day: str) -> subprocess.Popen[bytes]:
        argv = [sys.executable, str(self.script), "Models", f"--directory={self.models}"]
        argv += ["--trials=2", "--day", day, '--regions=["de"]']
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.models.parent)}
        return subprocess.Popen(
            argv, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def kill_when(self, day: str, happens: Callable[[], object]) -> None:
        """Kill Luigi, and nothing that it has started, at an instant."""
        luigi = self.start(day)
        self.end_when(luigi, happens)

    def end_when(self, luigi: subprocess.Popen[bytes], happens: Callable[[], object]) -> None:
        until(lambda: happens() or luigi.poll() is not None, PATIENCE_S)
        assert luigi.poll() is None
        luigi.send_signal(signal.SIGKILL)
        luigi.wait()

    def start_beside(self, day: str) -> subprocess.Popen[bytes]:
        """Start Luigi while a command of an earlier one runs, and wait until it waits for it."""
        luigi = self.start(day)
        until(lambda: self._waits(luigi.pid) or luigi.poll() is not None, PATIENCE_S)
        assert luigi.poll() is None
        return luigi

    def _waits(self, pid: int) -> bool:
        """Return whether a process waits for a lock on a file."""
        lines = Path("/proc/locks").read_text().splitlines()
        return any(" -> FLOCK " in line and f" {pid} " in line for line in lines)

    def open(self, gate: str) -> None:
        """Let trials or final trainings end."""
        (self.models.parent / gate).touch()

    def trials(self, folder: Path) -> list[dict]:
        return json.loads(commands.spearmint("export", "--json", folder).stdout)

    def done(self, day: str) -> list[str]:
        return sorted(path.name for path in (self.models / "days" / day).iterdir())


@pytest.mark.slow
def test_a_killed_worker_leaves_nothing_to_clean(tmp_path: Path) -> None:
    pipeline, day = Pipeline(tmp_path), "2026-11-25"
    folder = pipeline.folder
    pipeline.kill_when(day, (folder / "regions/de/jobs/00000001").exists)
    second = pipeline.start_beside(day)
    pipeline.open("trials")
    pipeline.end_when(second, (folder / "regions/de/final").exists)
    third = pipeline.start_beside(day)
    pipeline.open("finals")
    assert third.wait() == 0
    assert pipeline.done(day) == ["de.final", "de.generations", "de.promote", "de.search"]
    assert len(pipeline.trials(folder)) == 2
    assert not (folder / "generations").exists()
    models = folder / "models/de"
    assert [path.name for path in models.glob("[0-9]*")] == ["00000001"]
    assert (models / "current/files/weights.npy").exists()


@pytest.mark.slow
def test_the_next_day_is_one_generation_also_after_a_kill(tmp_path: Path) -> None:
    pipeline, day = Pipeline(tmp_path), "2026-11-26"
    folder = pipeline.folder
    folder.mkdir(parents=True)
    shutil.copy(tmp_path / "regions/demand.py", folder)
    config = (tmp_path / "regions/config.pb").read_text().splitlines()
    kept = [line for line in config if not line.startswith(("region:", "warm_start:"))]
    (folder / "config.pb").write_text("\n".join([*kept, 'region: "de"\n']))
    pipeline.open("trials")
    pipeline.open("finals")
    commands.spearmint("--method=random", "--max-finished-jobs=2", folder)
    (tmp_path / "trials").unlink()
    old = folder / "generations/00000001"
    pipeline.kill_when(day, lambda: old.exists() and (folder / "spearmint.db").exists())
    pipeline.open("trials")
    assert pipeline.start(day).wait() == 0
    assert [path.name for path in old.parent.iterdir()] == [old.name]
    assert len(pipeline.trials(folder)) == len(pipeline.trials(old)) == 2
    log = (folder / "log.txt").read_text()
    assert pipeline.start(day).wait() == 0
    assert (folder / "log.txt").read_text() == log, "a day that is done runs nothing"
