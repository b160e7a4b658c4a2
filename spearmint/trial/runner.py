"""Run one trial: ``python -m spearmint.trial.runner FOLDER``. Imports neither Optuna nor scipy.

The runner reads ``trial.json`` in the folder and writes ``result.json`` by a rename. The user's
code prints to standard output, which the driver redirects to ``output/%08d.out``. The runner is
independent of the queue: the driver sets all that differs in environment variables.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spearmint.layout import BATCH, PROCESSES, STEPS, TrialFolder, read_json, write_json
from spearmint.trial.environment import (
    DONE_FILE,
    JOB_IDS,
    LOCK_FD,
    REGION,
    REPORTS_FILE,
    RERUN_EXIT_CODE,
    RETRY_S,
    TRIAL_DIR,
)
from spearmint.trial.failure import failure_of, print_every_character
from spearmint.trial.languages import LANGUAGES, Spec
from spearmint.trial.neighbours import culprit, may_rerun, run_again
from spearmint.trial.result_file import ResultFile
from spearmint.trial.retry import retry_os_error
from spearmint.trial.steps import export_steps

if TYPE_CHECKING:
    from spearmint.trial.batch.batch import Batch
    from spearmint.trial.gpu_use.monitoring import Monitor

_KEYS = {"key", "job_id", "directory", "name", "language", "params"}
_NO_GPU = {"", "-1", "none", "void", "nodevfiles"}  # in CUDA_VISIBLE_DEVICES
_LOCK_S = 30.0  # how long to wait until another runner exits


def main(argv: Sequence[str] | None = None) -> int:
    """Run the trial in the folder that ``argv`` names; return 0 if its result is written."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m spearmint.trial.runner FOLDER\n")
        return 2
    folder = TrialFolder(Path(arguments[0]).absolute())
    spec = read_json(folder.spec)
    if spec is None or not spec.keys() >= _KEYS:
        sys.stderr.write(f"{folder.spec} is missing or does not describe a trial\n")
        return 2
    environment = dict(os.environ)
    retry_s, done_file = float(os.environ.pop(RETRY_S, "0")), os.environ.pop(DONE_FILE, "")
    rerun_exit_code = int(os.environ.pop(RERUN_EXIT_CODE, "0"))
    if (lock := _lock(folder, retry_s)) is None:
        sys.stderr.write("another process is running this trial\n")
        return rerun_exit_code
    if spec.get(PROCESSES):
        os.set_inheritable(lock, True)  # to the guard, which outlasts all processes
    pid = os.getpid()
    try:
        if folder.result.exists():
            _mark_done(done_file)
            return 0
        start = time.time()
        result_file = retry_os_error(lambda: _begin(folder, start), retry_s)
        batch = retry_os_error(lambda: _batch(spec, folder, retry_s), retry_s)
    except OSError as error:
        sys.stderr.write(f"cannot start the trial: {error}\n")
        return 1
    _export(spec, folder)
    print_every_character()
    monitor = _monitor_gpus(folder, start)
    started, began = time.time(), time.monotonic()
    result = _evaluate(spec, folder, batch)
    if os.getpid() != pid:
        os._exit(0)  # a forked child that also returned from main: its parent writes the result
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # or None
            stream.flush()
    seconds = time.monotonic() - began
    if monitor is not None:
        monitor.end()
    if "reason" in result and (neighbour := culprit(started)) and may_rerun(folder):
        sys.stderr.write(
            f"\nProcess {neighbour}, which shares the GPU, had a fatal GPU error. It ended all "
            "CUDA programs on this GPU. Rerunning this trial.\n\n"
        )
        sys.stderr.flush()
        result_file.discard()
        if batch is not None:
            batch.discard()
        run_again(folder, environment, lock)
    if batch is not None:
        batch.close(result)
    outcome = {**result, "key": spec["key"], "seconds": seconds}
    retry_os_error(lambda: result_file.write(outcome), retry_s)
    _mark_done(done_file)
    return 0


def _export(spec: Spec, folder: TrialFolder) -> None:
    """Set the environment variables of the user's code."""
    os.environ[TRIAL_DIR] = str(folder.files)
    os.environ[REPORTS_FILE] = str(folder.reports)
    os.environ[REGION] = spec.get("region", "")
    if STEPS in spec:
        export_steps(*spec[STEPS])


def _begin(folder: TrialFolder, start: float) -> ResultFile:
    """Record the process, host, GPUs and job of the trial; reserve the disk space of its result."""
    mine = {"pid": os.getpid(), "host": os.uname().nodename, "start": start}
    known = {"gpus": os.environ.get("CUDA_VISIBLE_DEVICES"), "job": _job_id()}
    write_json(folder.runner, {**mine, **{k: v for k, v in known.items() if v is not None}})
    folder.files.mkdir(exist_ok=True)
    return ResultFile(folder.result)


def _batch(spec: Spec, folder: TrialFolder, retry_s: float) -> Batch | None:
    """Return the trials of a job that runs several; None for one trial."""
    if BATCH not in spec:
        return None
    from spearmint.trial.batch.batch import Batch  # most jobs run one trial

    return Batch(spec, folder, retry_s)


def _monitor_gpus(folder: TrialFolder, start: float) -> Monitor | None:
    """Start to sample the GPUs of the trial; None if it has none.

    A host with several GPUs and no assignment has no GPU that is the trial's.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None and Path("/dev/nvidia0").exists() and not Path("/dev/nvidia1").exists():
        visible = "0"
    if (visible or "").strip().lower() in _NO_GPU:
        return None
    from spearmint.trial.gpu_use.monitoring import Monitor  # most trials have no GPU

    return Monitor.of(folder, start)


def _job_id() -> str | None:
    return next((os.environ[name] for name in JOB_IDS if os.environ.get(name)), None)


def _mark_done(done_file: str) -> None:
    """Signal the driver that the result is written."""
    if done_file:
        with contextlib.suppress(OSError):
            Path(done_file).touch()


def _lock(folder: TrialFolder, retry_s: float) -> int | None:
    """Return the trial's lock, which the driver may have passed on; None on a timeout.

    The kernel releases the lock when this process and all its forks have exited or were killed.
    """
    inherited = os.environ.pop(LOCK_FD, None)
    if inherited is not None:
        os.set_inheritable(int(inherited), False)
        return int(inherited)
    try:
        return retry_os_error(lambda: _locked(folder), min(retry_s, _LOCK_S))
    except BlockingIOError:
        return None


def _locked(folder: TrialFolder) -> int:
    fd = os.open(folder.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise
    return fd


def _evaluate(spec: Spec, folder: TrialFolder, batch: Batch | None) -> dict[str, object]:
    """Return the numbers of the trial or ``{"reason": text}``; never raises."""
    try:
        os.chdir(spec["directory"])
        if batch is not None:
            return batch.run()
        if spec.get("final"):
            from spearmint.trial.final import run_final  # most jobs are trials

            return {"value": run_final(spec, folder)}
        if spec.get(PROCESSES):
            from spearmint.trial.ranks.launch import run_ranks

            return run_ranks(spec, folder)
        return LANGUAGES[spec["language"]](spec, folder)
    except BaseException as error:  # noqa: BLE001 - any exception makes the trial fail
        return failure_of(error, Path(spec["directory"]))


if __name__ == "__main__":
    sys.exit(main())
