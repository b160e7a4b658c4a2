"""The job of a trial: its folder, its request to a driver, and the user's code."""

from __future__ import annotations

from spearmint.drivers import JobRequest
from spearmint.layout import NODES, PROCESSES, STEPS, Layout, TrialFolder, write_json
from spearmint.model import Experiment, Trial
from spearmint.store.study import Study
from spearmint.trial.languages import to_entries, wrappers
from spearmint.trial.outputs import OBJECTIVES, OUTPUTS


def prepare_folder(experiment: Experiment, layout: Layout, trial: Trial, key: str) -> TrialFolder:
    """Write the input of the runner, delete files of earlier jobs, and return the folder.

    Args:
        experiment: The search of ``trial``.
        layout: Paths of the search.
        trial: The trial to run.
        key: Digest of the trial; the runner copies it into its result.
    """
    folder = layout.folder(trial.id)
    for directory in (layout.jobs, layout.outputs, folder.path):  # a user can delete them
        directory.mkdir(exist_ok=True)
    for stale in (folder.reports, folder.result):
        stale.unlink(missing_ok=True)
    spec: dict[str, object] = {
        "key": key,
        "job_id": trial.id,
        "directory": str(layout.root),
        "name": experiment.name,
        "region": experiment.region,
        "language": experiment.language,
        "params": to_entries(experiment.variables, trial.params),
    }
    if experiment.constraints:
        spec[OUTPUTS] = [constraint.name for constraint in experiment.constraints]
    if experiment.objectives:
        spec[OBJECTIVES] = [objective.name for objective in experiment.objectives]
    if experiment.fidelity is not None:
        spec[STEPS] = experiment.fidelity.steps(len(trial.rungs))
    if experiment.processes_of_trial is not None:
        spec[PROCESSES] = experiment.processes_of_trial
        spec |= {NODES: experiment.resources.nodes} if experiment.resources.nodes > 1 else {}
    write_json(folder.spec, spec)
    return folder


def job_request(experiment: Experiment, layout: Layout, trial_id: int) -> JobRequest:
    """Return the job request of a trial."""
    return JobRequest(
        name=f"{experiment.study_name}-{trial_id}",
        folder=layout.folder(trial_id),
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
