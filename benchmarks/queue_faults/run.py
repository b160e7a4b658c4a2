"""One search with faults, and what came of it."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.queue_faults.beds import DISK, Bed
from benchmarks.queue_faults.controller import Controller
from benchmarks.queue_faults.judge import Outcome, judge
from benchmarks.queue_faults.trials import CODE, CONFIG, Records
from tests.testbed.cell import UID
from tests.waiting import until

TRIALS, AT_ONCE = 30, 6
DOWN_S, FULL_S = 60.0, 30.0
_END_S = 900.0
_NAME = "search"


class FaultySearch:
    """A search of :data:`TRIALS` trials on a bed.

    Args:
        steps: Duration of a trial in half seconds.
        log: File for the output of the controller and the faults.
    """

    def __init__(self, bed: Bed, *, seed: int, steps: int, log: Path) -> None:
        self._bed, self._log, self._draw = bed, log, random.Random(seed)  # noqa: S311
        self._records = Records(self._write(steps))
        argv = ["spearmint", f"--driver={bed.driver}", "--method=RandomChooser"]
        argv += ["--polling-time=1", f"--max-finished-jobs={TRIALS}", "--max-retries=5"]
        self._controller = Controller(
            bed, [*argv, *bed.options, str(DISK / _NAME)], log, self._draw
        )

    def _write(self, steps: int) -> Path:
        records: Path = self._bed.cluster.shared / "records"
        records.touch()
        root = self._inside()
        root.mkdir()
        (root / "config.pb").write_text(CONFIG)
        (root / "trial.py").write_text(CODE.format(records=str(records), steps=steps))
        for path in (records, root, *root.iterdir()):
            os.chown(path, UID, UID)
        return records

    def _inside(self) -> Path:
        """Return the directory of the experiment as this process sees it."""
        inside: Path = self._bed.cluster.master.inside(f"/../../{DISK.name}")
        return inside / _NAME

    def run(self) -> Outcome:
        """Run the search with all faults; return what came of it."""
        began = time.monotonic()
        queue = bool(self._bed.daemons)
        self._kill(7 if queue else 12)
        if queue:
            self._stop_daemons()
            self._kill(2)
            self._lose_host()
            self._kill(3)
        self._fill_disk(3 if queue else 6)
        self._kill(20 - self._controller.kills)
        self._note("no more faults")
        ended = self._controller.run_to_end(_END_S)
        seconds = time.monotonic() - began
        return self._judge(seconds, ended=ended)

    def _note(self, text: str) -> None:
        with self._log.open("a") as log:
            log.write(f"=== {time.time():.1f} {text}\n")

    def _kill(self, count: int) -> None:
        for _ in range(count):
            self._controller.kill_later()

    def _stop_daemons(self) -> None:
        self._note(f"stop {self._bed.daemons}")
        back = time.monotonic() + DOWN_S
        self._controller.start()
        self._controller.runs_until(time.monotonic() + 3)
        self._bed.stop_daemons()
        self._controller.runs_until(time.monotonic() + 5)
        for _ in range(3):  # the command can refuse to start
            self._controller.start()
            self._controller.runs_until(time.monotonic() + self._draw.uniform(1, 6))
            if self._controller.runs():
                self._controller.kill_later()
        self._controller.start()
        while time.monotonic() < back:
            time.sleep(0.2)
        self._bed.start_daemons()
        self._note(f"{self._bed.daemons} is back")

    def _lose_host(self) -> None:
        self._controller.start()
        victims: list[str] = []

        def busy() -> bool:
            self._controller.start()
            since = time.time() - 2
            runs = [run for run in self._records.runs() if run.value is None and run.seen > since]
            victims[:] = [run.host for run in runs if run.host != "master"]
            return bool(victims)

        until(busy, 300, 0.3)
        self._note(f"lose {victims[0]}")
        self._bed.cluster.fabric.nodes[victims[0]].kill()

    def _fill_disk(self, kills: int) -> None:
        self._note("fill the disk")
        filler = self._inside().with_name("filler")
        free = time.monotonic() + FULL_S
        with filler.open("wb", buffering=0) as file:
            for size in (1 << 20, 4096):
                try:
                    while file.write(b"\0" * size):
                        pass
                except OSError:
                    continue
        while time.monotonic() < free:
            if kills:
                kills -= 1
                self._controller.start()
                if self._controller.runs_until(time.monotonic() + self._draw.uniform(0.5, 5)):
                    self._controller.kill_later()
            else:
                self._controller.start()
                time.sleep(0.5)
        filler.unlink()
        self._note("the disk has room again")

    # What came of it

    def _judge(self, seconds: float, *, ended: bool) -> Outcome:
        bed = self._bed
        jobs = _last(bed.jobs)
        bed.finish()
        orphans = _last(bed.leftovers)
        exported = bed.cluster.run("spearmint", "export", "--json", str(DISK / _NAME), uid=UID)
        trials: list[dict[str, Any]] = json.loads(exported.stdout or "[]")
        outcome = Outcome(
            driver=bed.driver,
            verdict=judge(trials, self._records.runs(), wanted=TRIALS, at_once=AT_ONCE),
            orphans=orphans,
            jobs=jobs,
            kills=self._controller.kills,
            errors=sum(n for status, n in self._controller.exits.items() if status),
            ended=ended,
            seconds=round(seconds, 1),
        )
        self._keep(trials, outcome)
        return outcome

    def _keep(self, trials: object, outcome: Outcome) -> None:
        """Keep what explains the outcome next to the log."""
        kept = self._log.with_suffix("")
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir()
        shutil.copy(self._records.path, kept / "records")
        shutil.copytree(self._inside(), kept / _NAME, ignore_dangling_symlinks=True)
        text = json.dumps({"outcome": asdict(outcome), "trials": trials}, indent=1)
        (kept / "outcome.json").write_text(text)


def _last(listed: Any) -> list[str]:
    """Return what is still listed after a minute, or nothing as soon as nothing is."""
    found: list[str] = []

    def is_empty() -> bool:
        found[:] = listed()
        return not found

    with contextlib.suppress(TimeoutError):
        until(is_empty, 60, 0.5)
    return found
