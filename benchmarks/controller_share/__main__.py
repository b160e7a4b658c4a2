"""Run a search with each driver, and measure it while all trials run."""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

import benchmarks.controller_share
from benchmarks.controller_share.queues import Bed, beds
from benchmarks.queue_faults.table import simple_table

_CONFIG = 'language: PYTHON\nname: "trial"\nvariable { name: "x" type: FLOAT min: 0 max: 1 }\n'
_CODE = "def main(job_id, params):\n    return 0.0\n"
_START_S = 900.0
_SETTLE_S = 10.0
_HEADS = ("queue", "share of a core", "of it commands")


@dataclass(frozen=True)
class Figures:
    """What was measured for a queue.

    Attributes:
        share: CPU seconds of the controller and its children for each second.
        children: The part of the commands of the queue.
        switches: Voluntary context switches of the controller for each second.
        submit_s: CPU seconds of the controller and its children for each submitted trial.
    """

    queue: str
    trials: int
    seconds: float
    share: float
    children: float
    switches: float
    submit_s: float


def main() -> None:
    """Print a table of shares."""
    parser = argparse.ArgumentParser(
        description=benchmarks.controller_share.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--trials", type=int, default=1000, help="that run at the same time")
    parser.add_argument("--seconds", type=float, default=60.0, help="of the measurement")
    parser.add_argument("--answer-s", type=float, default=0.0, help="delay of each command")
    parser.add_argument("--queues", help="default: all; separated by semicolons")
    parser.add_argument("--profile", type=Path, help="write profiles of the controllers here")
    parser.add_argument("--json", type=Path, help="write all figures to this file, too")
    given = parser.parse_args()
    found: list[Figures] = []
    with tempfile.TemporaryDirectory(prefix="share-") as folder:
        for queue in given.queues.split(";") if given.queues else beds(Path(folder), 0.0):
            place = Path(folder) / queue.replace(", ", "-").replace(" ", "-")
            place.mkdir()
            with beds(place, given.answer_s)[queue] as bed:
                found.append(measure(queue, bed, place, given))
            print(found[-1], file=sys.stderr, flush=True)
    print(simple_table(_HEADS, [_cells(figures) for figures in found]))
    if given.json:
        given.json.write_text(json.dumps(_document(found), indent=1) + "\n")


def measure(queue: str, bed: Bed, folder: Path, given: argparse.Namespace) -> Figures:
    """Return the figures of a search whose trials all run."""
    search = folder / "search"
    search.mkdir()
    (search / "config.pb").write_text(_CONFIG)
    (search / "trial.py").write_text(_CODE)
    profile = ["-m", "cProfile", "-o", str(given.profile / queue)] if given.profile else []
    options = [f"--driver={queue.partition(',')[0]}", "--method=RandomChooser", "--gpus=0"]
    options += [f"--max-concurrent={given.trials}", *bed.options, str(search)]
    with (folder / "log").open("w") as log:
        controller = subprocess.Popen(
            [sys.executable, *profile, "-m", "spearmint", *options],
            env={**os.environ, **bed.environment},
            stdout=log,
            stderr=log,
        )
    try:
        deadline = time.monotonic() + _START_S
        while bed.running() < given.trials:
            if controller.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(
                    f"{queue}: the trials do not start\n{(folder / 'log').read_text()}"
                )
            time.sleep(0.5)
        process = psutil.Process(controller.pid)
        submit = sum(process.cpu_times()[:4]) / given.trials
        time.sleep(_SETTLE_S)
        return _watch(queue, process, given, submit)
    finally:
        controller.send_signal(signal.SIGINT)
        controller.wait()


def _watch(
    queue: str, process: psutil.Process, given: argparse.Namespace, submit: float
) -> Figures:
    before, switched, began = process.cpu_times(), process.num_ctx_switches(), time.monotonic()
    time.sleep(given.seconds)
    after, lasted = process.cpu_times(), time.monotonic() - began
    own = after.user + after.system - before.user - before.system
    children = after.children_user + after.children_system
    children -= before.children_user + before.children_system
    switches = process.num_ctx_switches().voluntary - switched.voluntary
    return Figures(
        queue=queue,
        trials=given.trials,
        seconds=round(lasted, 1),
        share=round((own + children) / lasted, 5),
        children=round(children / lasted, 5),
        switches=round(switches / lasted, 1),
        submit_s=round(submit, 4),
    )


def _document(found: list[Figures]) -> dict[str, object]:
    return {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "figures": [asdict(figures) for figures in found],
    }


def _cells(figures: Figures) -> list[str]:
    return [
        figures.queue,
        f"{100 * figures.share:.1f} %",
        f"{100 * figures.children:.1f} %",
    ]


if __name__ == "__main__":
    main()
