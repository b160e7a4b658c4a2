"""The trials of one job, from the view of its runner."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spearmint.layout import SPECS, Layout, TrialFolder, read_json, write_json
from spearmint.trial.batch.remote import remote_folder
from spearmint.trial.batch.trial import BatchTrial
from spearmint.trial.languages import MAIN_BATCH, Spec, load_module
from spearmint.trial.outputs import BadResult, short
from spearmint.trial.result_file import ResultFile
from spearmint.trial.results import TOGETHER
from spearmint.trial.retry import retry_os_error

_UNTOLD = f"{MAIN_BATCH} returned without a result of this trial"


def _values(returned: object) -> list[Any]:
    """Return the items of a list, tuple or array; no items of anything else."""
    if isinstance(returned, list | tuple):
        return list(returned)
    return list(returned) if getattr(returned, "ndim", 0) == 1 else []  # type: ignore[call-overload]


class Batch:
    """The trials of a job that have no result yet.

    The time of the job is shared equally among the trials that train at each moment, so that the
    seconds of all trials add up to those of the job.

    Args:
        spec: Content of trial.json of the job.
        job: Folder of the job, with runner.json, which each trial gets, too.
        retry_s: How long to retry file operations.

    Raises:
        OSError: There is no disk space for the results.
    """

    def __init__(self, spec: Spec, job: TrialFolder, retry_s: float) -> None:
        runner = read_json(job.runner) or {}
        self._spec, self._job, self._retry_s = spec, job, retry_s
        self._files: dict[int, ResultFile] = {}
        self._seconds: dict[int, float] = {}
        self._since = time.monotonic()
        self.trials: list[BatchTrial] = []
        self._was_called = False
        layout = Layout(Path(spec["directory"]), spec.get("region", ""))
        for own in spec[SPECS]:
            folder = layout.folder(own["job_id"])
            if not folder.spec.exists():  # a host without the directory of the search
                folder = remote_folder(job, own["job_id"])
                folder.path.mkdir(parents=True, exist_ok=True)
            if folder.result.exists() or folder.stop.exists():  # before the job was (re)started
                continue
            write_json(folder.runner, runner)
            folder.files.mkdir(exist_ok=True)
            own_spec = {**own, "directory": spec["directory"]}
            trial = BatchTrial(own_spec, folder, self._end)
            self._files[trial.id] = ResultFile(folder.result)
            self._seconds[trial.id] = 0.0
            self.trials.append(trial)

    def run(self) -> dict[str, Any]:
        """Call ``main_batch(trials)`` of the module NAME.py; return the result of the job.

        Raises:
            BadResult: There is no such function.
            BaseException: Any exception of the user's code.
        """
        self._since = time.monotonic()
        name = self._spec["name"]
        main: object = getattr(load_module(Path(self._spec["directory"]), name), MAIN_BATCH, None)
        if not callable(main):
            raise BadResult(f"{name}.py has no function {MAIN_BATCH}(trials)")
        if self.trials:
            self._was_called = True
            pid = os.getpid()
            returned = main(list(self.trials))
            if os.getpid() == pid:  # no child process that returned as well
                self._tell_all(returned)
        return {"value": 0.0}

    def _tell_all(self, returned: object) -> None:
        """Tell the values that ``main_batch`` returned to the trials without a result."""
        left = [trial for trial in self.trials if not trial.has_ended]
        if returned is None or not left:
            return
        values = _values(returned)
        if len(values) != len(self.trials):
            text = f"{MAIN_BATCH} returned {short(returned)}, expected a list of "
            for trial in left:
                trial.fail(f"{text}{len(self.trials)} values, one for each trial")
            return
        for trial, value in zip(self.trials, values, strict=True):
            trial.tell(value)

    def _end(self, trial: BatchTrial, result: Mapping[str, Any] | None) -> None:
        """Store the result of a trial; None if that it was stopped, or its result, is stored."""
        self._share_time()
        file, seconds = self._files.pop(trial.id), self._seconds.pop(trial.id)
        if result is None:
            file.discard()
            return
        outcome = {**result, "key": trial.spec["key"], "seconds": seconds}
        try:
            retry_os_error(lambda: file.write(outcome), self._retry_s)
        except OSError as error:
            sys.stderr.write(f"cannot store the result of trial {trial.id}: {error}\n")

    def _share_time(self) -> None:
        now = time.monotonic()
        for number in self._seconds:
            self._seconds[number] += (now - self._since) / len(self._seconds)
        self._since = now

    def close(self, result: Mapping[str, Any]) -> None:
        """Store that the trials without a result failed, with the end of the job.

        If ``main_batch`` failed and several have none, any of them can be the cause. They are
        marked, so that each is retried alone.

        Args:
            result: What ``run`` returned, or why it failed.
        """
        left = [trial for trial in self.trials if not trial.has_ended]
        failure: dict[str, Any] = dict(result) if "reason" in result else {"reason": _UNTOLD}
        if "reason" in result and self._was_called and len(left) > 1:
            failure[TOGETHER] = True
        for trial in left:
            self._end(trial, failure)
        for trial in self.trials:
            with contextlib.suppress(OSError):
                shutil.copyfile(self._job.gpu_use, trial.folder.gpu_use)

    def discard(self) -> None:
        """Remove the temporary files of results, before the job is rerun."""
        for file in self._files.values():
            file.discard()
