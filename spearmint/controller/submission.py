"""The job of a trial: its folder, its request to a driver, and the user's code."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from spearmint.drivers import JobRequest
from spearmint.layout import (
    BATCH,
    JOB,
    NODES,
    PROCESSES,
    SPECS,
    STEPS,
    Layout,
    TrialFolder,
    write_json,
)
from spearmint.model import Experiment, Trial
from spearmint.store.study import Study
from spearmint.trial.batch.remote import drop_files, send_files
from spearmint.trial.languages import to_entries, wrappers
from spearmint.trial.outputs import OBJECTIVES, OUTPUTS


def prepare_job(
    experiment: Experiment,
    layout: Layout,
    trials: Sequence[Trial],
    key_of: Callable[[Trial], str],
) -> JobRequest:
    """Write the folders of a new job of ``trials``, and return its request.

    Without ``batch`` in the search, there is one trial.

    Args:
        experiment: The search.
        layout: Paths of the search.
        trials: The trials to run.
        key_of: Returns the digest of a trial; the runner copies it into its result.
    """
    if experiment.batch > 1:
        _prepare_batch(experiment, layout, trials, [key_of(trial) for trial in trials])
    else:
        prepare_folder(experiment, layout, trials[0], key_of(trials[0]))
    return job_request(experiment, layout, trials[0].id)


def _prepare_batch(
    experiment: Experiment, layout: Layout, trials: Sequence[Trial], keys: Sequence[str]
) -> None:
    """Write the folder of a job of several trials, then those of the trials."""
    job = layout.batch(trials[0].id)
    job.path.mkdir(parents=True, exist_ok=True)
    for stale in (job.reports, job.result):
        stale.unlink(missing_ok=True)
    for trial in trials:
        earlier = layout.job(trial.id)
        if earlier not in (job, layout.folder(trial.id)):
            drop_files(earlier, trial.id)
    send_files(job, [(trial.id, layout.folder(trial.id)) for trial in trials])
    specs = [
        {**_trial_spec(experiment, layout, trial, key), JOB: trials[0].id}
        for trial, key in zip(trials, keys, strict=True)
    ]
    own = _spec(experiment, layout, trials[0].id, _digest(keys))
    numbers = [trial.id for trial in trials]
    write_json(job.spec, {**own, "params": {}, BATCH: numbers, SPECS: specs})
    for trial, spec in zip(trials, specs, strict=True):
        _prepare_trial(layout, trial, spec)


def _digest(keys: Sequence[str]) -> str:
    return hashlib.sha256("".join(keys).encode()).hexdigest()


def prepare_folder(experiment: Experiment, layout: Layout, trial: Trial, key: str) -> TrialFolder:
    """Write the input of the runner, delete files of earlier jobs, and return the folder.

    Args:
        experiment: The search of ``trial``.
        layout: Paths of the search.
        trial: The trial to run.
        key: Digest of the trial; the runner copies it into its result.
    """
    return _prepare_trial(layout, trial, _trial_spec(experiment, layout, trial, key))


def _prepare_trial(layout: Layout, trial: Trial, spec: dict[str, object]) -> TrialFolder:
    folder = layout.folder(trial.id)
    for directory in (layout.jobs, layout.outputs, folder.path):  # a user can delete them
        directory.mkdir(exist_ok=True)
    stale = [folder.reports, folder.result, folder.stop]
    for path in [*stale, folder.runner] if JOB in spec else stale:  # drivers delete that of jobs
        path.unlink(missing_ok=True)
    write_json(folder.spec, spec)
    return folder


def _trial_spec(
    experiment: Experiment, layout: Layout, trial: Trial, key: str
) -> dict[str, object]:
    """Return trial.json of a trial."""
    spec = _spec(experiment, layout, trial.id, key)
    spec["params"] = to_entries(experiment.variables, trial.params)
    if experiment.constraints:
        spec[OUTPUTS] = [constraint.name for constraint in experiment.constraints]
    if experiment.objectives:
        spec[OBJECTIVES] = [objective.name for objective in experiment.objectives]
    if experiment.fidelity is not None:
        spec[STEPS] = experiment.fidelity.steps(len(trial.rungs))
    if experiment.processes_of_trial is not None:
        spec[PROCESSES] = experiment.processes_of_trial
        spec |= {NODES: experiment.resources.nodes} if experiment.resources.nodes > 1 else {}
    return spec


def _spec(experiment: Experiment, layout: Layout, trial_id: int, key: str) -> dict[str, object]:
    """Return what trial.json of a trial and of a job have in common."""
    return {
        "key": key,
        "job_id": trial_id,
        "directory": str(layout.root),
        "name": experiment.name,
        "region": experiment.region,
        "language": experiment.language,
    }


def job_request(experiment: Experiment, layout: Layout, trial_id: int) -> JobRequest:
    """Return the request of a job, by its first trial."""
    is_batch = experiment.batch > 1
    return JobRequest(
        name=f"{experiment.study_name}-{trial_id}",
        folder=layout.batch(trial_id) if is_batch else layout.folder(trial_id),
        directory=layout.root,
        output=layout.output(trial_id),
    )


def code_has_changed(study: Study, layout: Layout) -> bool:
    """Return whether the user's code was changed after the last trial of ``study`` ended.

    If so and all trials failed, the cause was a bug in the code and not the parameters.
    """
    _, ended = study.span()
    root, experiment = layout.root, study.experiment
    files = {
        *root.glob("*.py"),
        *root.glob("*.m"),
        *wrappers(experiment.language, root, experiment.name),
    }
    changed = max((path.stat().st_mtime for path in files if path.is_file()), default=0.0)
    return ended is not None and changed > ended.timestamp()
