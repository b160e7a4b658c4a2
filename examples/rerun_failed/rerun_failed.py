"""Queue the failed trials of a search for a rerun: python rerun_failed.py DIRECTORY."""

import sys
from pathlib import Path

import optuna
from optuna.trial import TrialState

DISREGARDED = "spearmint:disregarded"  # trials that the chooser does not learn from


def rerun_failed(directory: str) -> int:
    """Queue each failed trial of the search in ``directory``; return their number."""
    url = f"sqlite:///{Path(directory).resolve() / 'spearmint.db'}"
    queued = 0
    for name in optuna.get_all_study_names(url):  # one study for each region
        study = optuna.load_study(study_name=name, storage=url)
        done = set(study.user_attrs.get(DISREGARDED, []))
        failed = [
            trial
            for trial in study.get_trials(states=[TrialState.FAIL])
            if trial.params and trial.number not in done
        ]
        for trial in failed:
            study.enqueue_trial(trial.params)
        done.update(trial.number for trial in failed)
        study.set_user_attr(DISREGARDED, sorted(done))
        queued += len(failed)
    return queued


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    print(f"Queued {rerun_failed(sys.argv[1])} failed trials; start the search to run them.")
