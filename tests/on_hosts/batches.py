"""Searches whose jobs have up to four trials, and checks of their records."""

from __future__ import annotations

from collections.abc import Iterable

from tests.on_hosts.searches import CODE, CONFIG, Run, SgeSearch, Use, assert_exclusive

CONFIG_OF_BATCHES = f"{CONFIG}batch: 4\n"

# A thread for each trial. Those of even number end after half of the steps.
BATCHES = (
    CODE.replace("def main(job_id, params):", "def train(trial):\n    job_id = trial.id")
    .replace('Path(os.environ["SPEARMINT_TRIAL_DIR"])', "trial.files")
    .replace("range(first, STEPS)", "range(first, STEPS // (2 - job_id % 2))")
    .replace("    return value\n", "    trial.tell(value)\n")
    + """
def main_batch(trials):
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(len(trials)) as pool:
        list(pool.map(train, trials))
"""
)


def uses_of_jobs(runs: Iterable[Run]) -> list[Use]:
    """Return the use of a GPU by each job; its trials share it."""
    by_job: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        by_job.setdefault((run.job, run.gpus[0]), []).append(run)
    return [
        Use(gpu, min(run.began for run in found), max(run.seen for run in found))
        for (_, gpu), found in by_job.items()
    ]


def assert_complete_in_batches(search: SgeSearch) -> None:
    """Check that each trial ran to its end once, and that each job had its GPU alone."""
    trials, runs = search.trials(), search.runs()
    assert [trial["state"] for trial in trials] == ["complete"] * search.n_trials, search.output()
    finished = [(run.trial, run.value) for run in runs if run.value is not None]
    assert sorted(finished) == sorted((trial["id"], trial["value"]) for trial in trials)
    assert_exclusive(uses_of_jobs(runs))
    search.assert_all_free((), 120)
