"""Searches on a cell whose trials record where and when they ran, and checks of these records."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import psutil

from tests.testbed.cell import UID, Cell
from tests.testbed.fabric import Node
from tests.waiting import text_of, until

# A trial waits before one of its steps until the test releases it, so that a fault hits it while it
# runs, and resumes from its checkpoint. It writes a record ten times a second, which also gives the
# end of a killed run. The records are outside the directory that a test makes read-only.
CODE = """
import contextlib, json, os, random, socket, time, uuid
from pathlib import Path

RUNS, STEPS = Path({runs!r}), {steps}

def main(job_id, params):
    checkpoint = Path(os.environ["SPEARMINT_TRIAL_DIR"]) / "step"
    first = int(checkpoint.read_text()) if checkpoint.exists() else 0
    hold = Path(f"{{RUNS}}.hold")
    with (RUNS / uuid.uuid4().hex).open("w") as record:
        def note(**what):
            print(json.dumps({{"time": time.time(), **what}}), file=record, flush=True)
        note(parent=Path(f"/proc/{{os.getppid()}}/cmdline").read_text(),
             trial=job_id, region=os.environ["SPEARMINT_REGION"], first=first,
             job=os.environ["JOB_ID"], host=socket.gethostname(),
             gpus=os.environ["CUDA_VISIBLE_DEVICES"])
        for step in range(first, STEPS):
            while step >= {hold_at} and job_id >= {hold_from} and hold.exists():
                time.sleep(0.1)
                note()
            time.sleep(0.1)
            note()
            with contextlib.suppress(OSError):
                checkpoint.with_suffix(".new").write_text(str(step + 1))
                checkpoint.with_suffix(".new").replace(checkpoint)
        value = random.SystemRandom().random()
        note(value=value)
    return value
"""
CONFIG = 'language: PYTHON\nname: "{name}"\nvariable {{ name: "x" type: FLOAT min: 0 max: 1 }}\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a trial, from its own records.

    Attributes:
        job: Number of the job that ran it.
        first: Step of the checkpoint from which it resumed.
        began, seen: Seconds since the epoch; ``seen`` is the time of its last record.
        value: Its result; None if it did not finish.
        parent: Command of its parent process.
    """

    trial: int
    job: str
    region: str
    first: int
    host: str
    gpus: tuple[str, ...]
    began: float
    seen: float
    value: float | None
    parent: str


@dataclass(frozen=True, slots=True)
class Use:
    """One use of one GPU, in seconds since the epoch."""

    gpu: str
    began: float
    ended: float


STARTED: list[SgeSearch] = []
"""The searches of the running test; a failed test shows them."""


class Controller:
    """A ``spearmint`` process on the master, run by an ordinary user."""

    def __init__(self, cell: Cell, argv: Sequence[str], search: SgeSearch) -> None:
        self._cell, self._said, self._search = cell, bytearray(), search
        # A pipe, because tests limit the files that the command can write.
        self._process = subprocess.Popen(
            cell.enter(argv, uid=UID),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as out:
            while piece := out.read1():
                self._said += piece

    @property
    def output(self) -> str:
        """Its output so far."""
        return self._said.decode(errors="replace")

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def wait_for(self, pattern: str, *, release: bool = True) -> re.Match[str]:
        """Return the first match of ``pattern`` in the output.

        Args:
            release: Whether the trials may continue with their steps.
        """
        if release:
            self._search.release()
        found: list[re.Match[str]] = []

        def look() -> bool:
            found.extend(re.finditer(pattern, self.output))
            return bool(found) or self._process.poll() is not None

        until(look, 60, 0.1, progress=lambda: self.output)
        assert found, self.output
        return found[0]

    def send(self, number: int) -> None:
        """Send a signal to the command itself, not to the process that started it on the master."""
        os.kill(self._cell.master.process(f"bin/spearmint --driver={self._search.driver}"), number)

    def kill(self) -> None:
        """Send SIGKILL and wait for the end of the process."""
        self.send(signal.SIGKILL)
        self._process.wait()

    def end(self, status: int = 0, *, release: bool = True) -> str:
        """Wait for its end, check the exit status, and return its output.

        Args:
            status: The expected exit status.
            release: Whether the trials may continue with their steps.

        Raises:
            AssertionError: Another exit status, or no activity of it and its trials for 90 s.
        """
        if release:
            self._search.release()
        try:
            until(
                lambda: self._process.poll() is not None,
                90,
                0.1,
                progress=lambda: (self.output, self._search.recorded()),
            )
        except TimeoutError:
            jobs = self._search.queued()
            self.stop()
            raise AssertionError(f"timeout of the command:\n{self.output}\n{jobs}") from None
        self._reader.join()
        assert self._process.returncode == status, self.output
        return self.output

    def stop(self) -> None:
        """Kill it if it still runs."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError, AssertionError):
                self.send(signal.SIGKILL)
            self._process.kill()
            self._process.wait()
        self._reader.join()


class SgeSearch:
    """An experiment in the shared home whose trials write records of their runs.

    Args:
        trials: Number of trials of each region.
        steps: Duration of a trial in tenths of a second.
        regions: Number of regions in ``config``.
        hold_at: Step before which a trial waits until the test releases the trials.
        hold_from: First trial that waits.
        config, code: Templates of the files with ``{name}``, ``{runs}`` and ``{steps}``.
    """

    driver = "SGE"

    def __init__(
        self,
        cell: Cell,
        directory: Path,
        *,
        trials: int = 12,
        steps: int = 30,
        hold_at: int = 0,
        hold_from: int = 1,
        regions: int = 1,
        name: str = "trial",
        config: str = CONFIG,
        code: str = CODE,
    ) -> None:
        self.cell, self.directory, self._wanted = cell, directory, trials
        self.n_trials = trials * regions
        self._runs = cell.shared / "runs" / directory.name
        self._runs.mkdir(parents=True)
        self._hold = self._runs.with_name(f"{directory.name}.hold")
        self._hold.touch()
        directory.mkdir(parents=True)
        (directory / "config.pb").write_text(config.format(name=name))
        holds = {"hold_at": hold_at, "hold_from": hold_from}
        text = code.format(runs=str(self._runs), steps=steps, **holds)
        (directory / f"{name}.py").write_text(text)
        for path in (self._runs, directory, *directory.iterdir()):
            os.chown(path, UID, UID)
        self._controllers: list[Controller] = []

    def start(self, *options: str) -> Controller:
        """Start the command; the next call with the same options runs the same command."""
        argv = ["spearmint", f"--driver={self.driver}", "--method=RandomChooser"]
        argv += ["--polling-time=1", f"--max-finished-jobs={self._wanted}"]
        argv += [*options, str(self.directory)]
        self._controllers.append(Controller(self.cell, argv, self))
        if self not in STARTED:
            STARTED.append(self)
        return self._controllers[-1]

    def describe(self) -> str:
        """Return the end of the controllers' outputs and the jobs in the queue, for messages."""
        outputs = [controller.output[-4000:] for controller in self._controllers]
        return "\n".join([*(f"A command said:\n{output}" for output in outputs), self.queued()])

    def queued(self) -> str:
        """Return the jobs in the queue, for messages."""
        return self.cell.run("qstat", "-f", "-u", "*").stdout

    def release(self) -> None:
        """Allow the trials to continue with their steps."""
        self._hold.unlink(missing_ok=True)

    def recorded(self) -> int:
        """Return the size of the records so far in bytes."""
        return sum(path.stat().st_size for path in self._runs.iterdir())

    def stop(self) -> None:
        """Kill the controllers that a failed test left."""
        for controller in self._controllers:
            controller.stop()

    def command(self, *arguments: str) -> str:
        """Run another ``spearmint`` on the directory; return its output."""
        return self.cell.checked("spearmint", *arguments, str(self.directory), uid=UID)

    def output(self, controller: int = -1) -> str:
        """Return the output of a controller. Default: the last one."""
        return self._controllers[controller].output

    def assert_pilots_fork(self) -> None:
        """Run pilots, and check that they fork their trials and that ``--cancel`` ends all."""
        controller = self.start("--queue-ahead=3", "-n", "2")
        self.release()
        until(lambda: len(self.runs()) >= 8, 90, 0.1, progress=lambda: len(self.runs()))
        controller.kill()
        runs = self.runs()
        assert all("spearmint.trial.warm.process" in run.parent for run in runs), runs
        assert len({run.job for run in runs}) < len(runs), "no job ran two trials"
        assert_exclusive(uses(runs))
        self.command("--cancel")
        self.assert_all_free((), 120)

    # State of the search

    def runs(self) -> list[Run]:
        """Return every run of every trial so far, the oldest first."""
        runs = [_read_run(path) for path in self._runs.iterdir()]
        return sorted((run for run in runs if run is not None), key=lambda run: run.began)

    def running(self) -> list[Run]:
        """Return the runs without a result: running ones, and after a fault also killed ones."""
        return [run for run in self.runs() if run.value is None]

    def wait_running(self, count: int = 6, *, step: int = 0) -> list[Run]:
        """Wait for ``count`` concurrent runs; return them, the oldest first.

        They continue to run until the test releases the trials, at the latest in ``wait_for`` and
        ``end`` of the controller.

        Args:
            count: Number of runs.
            step: Number of steps that each of them must have finished.
        """
        until(lambda: len(self.running()) >= count, 60, 0.1, progress=lambda: len(self.runs()))
        running = self.running()
        until(
            lambda: all(self.step(run) >= step for run in running),
            60,
            0.1,
            progress=lambda: [self.step(run) for run in running],
        )
        return running

    def trainer(self, run: Run) -> psutil.Process:
        """Return the process of a trial's runner, also of one that its pilot forked."""
        file = self.directory / "jobs" / f"{run.trial:08d}" / "runner.json"
        return psutil.Process(self.node(run).pid_here(json.loads(file.read_text())["pid"]))

    def shepherd(self, run: Run) -> psutil.Process:
        """Return the process of Grid Engine that started a trial's runner."""
        above = self.trainer(run).parents()
        return next(process for process in above if process.name() == "sge_shepherd")

    def step(self, run: Run) -> int:
        """Return the number of steps that a trial has finished, from its checkpoint."""
        path = self.directory / "jobs" / f"{run.trial:08d}" / "files" / "step"
        return int(text_of(path) or 0)

    def node(self, run: Run) -> Node:
        """Return the host of a run."""
        return self.cell.fabric.nodes[run.host]

    def jobs_in(self, state: str) -> list[str]:
        """Return the numbers of the jobs in a state such as ``qw``.

        Grid Engine can report ``t`` instead of ``r`` for up to a second after the start of a trial.
        """
        rows = [line.split() for line in self.cell.run("qstat", "-u", "*").stdout.splitlines()[2:]]
        return [row[0] for row in rows if row[4] == state]

    # Checks at the end

    def assert_complete(self, *, lost: Iterable[str] = (), within_s: float = 120) -> None:
        """Check that every trial is complete by one finished run, and that GPUs were exclusive.

        All jobs must have ended and all GPUs must be free.

        Args:
            lost: Hosts that are down; their GPUs are not checked.
            within_s: Timeout in seconds until every GPU must be reported as free.
        """
        trials = self.trials()
        states = [trial["state"] for trial in trials]
        assert states == ["complete"] * self.n_trials, (states, self.output())
        runs = self.runs()
        finished = [run for run in runs if run.value is not None]
        stored = {(trial.get("region", ""), trial["id"]): trial["value"] for trial in trials}
        assert {(run.region, run.trial): run.value for run in finished} == stored
        assert len(finished) == len(stored), "a trial ran to its end twice"
        assert_exclusive(uses(runs))
        self.assert_all_free(lost, within_s)

    def assert_all_free(self, lost: Iterable[str], within_s: float) -> None:
        """Check that the cell has no jobs, and that all GPUs become free."""
        assert_all_free(self.cell, lost, within_s)

    def trials(self) -> list[dict[str, object]]:
        """Return the trials in the study."""
        trials: list[dict[str, object]] = json.loads(self.command("export", "--json"))
        return trials


def _read_run(path: Path) -> Run | None:
    notes = []
    for line in path.read_text().splitlines():
        with contextlib.suppress(ValueError):  # truncated by a kill
            notes.append(json.loads(line))
    if not notes:
        return None
    first = notes[0]
    return Run(
        trial=first["trial"],
        job=first["job"],
        region=first["region"],
        first=first["first"],
        host=first["host"],
        gpus=tuple(first["gpus"].split(",")),
        began=first["time"],
        seen=notes[-1]["time"],
        parent=first.get("parent", ""),
        value=notes[-1].get("value"),
    )


def uses(runs: Iterable[Run]) -> Iterator[Use]:
    """Yield each use of a GPU by ``runs``."""
    for run in runs:
        for gpu in run.gpus:
            yield Use(gpu, run.began, run.seen)


def assert_exclusive(uses: Iterable[Use]) -> None:
    """Check that no two jobs used a GPU at the same time."""
    by_gpu: dict[str, list[Use]] = {}
    for use in uses:
        assert use.gpu.startswith("GPU-"), use
        by_gpu.setdefault(use.gpu, []).append(use)
    for same in by_gpu.values():
        same.sort(key=lambda use: use.began)
        for before, after in pairwise(same):
            assert before.ended <= after.began, (before, after)


def assert_all_free(cell: Cell, lost: Iterable[str] = (), within_s: float = 120) -> None:
    """Check that the cell has no jobs, and that all GPUs become free."""
    cell.wait_idle()
    down = set(lost)

    def taken() -> list[dict[str, object]]:
        rows = json.loads(cell.checked("sge-jobs", "gpus", "--json", uid=UID))
        assert len(rows) == cell.gpus * len(cell.names), rows
        return [row for row in rows if row["status"] != "free" and row["host"] not in down]

    try:  # twice: processes of a deleted job that end last take their GPU again for a moment
        until(lambda: not taken() and not taken(), within_s, 0.5)
    except TimeoutError as error:
        raise AssertionError(taken()) from error
