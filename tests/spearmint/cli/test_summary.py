"""The lines at the end of a search, which read few trials."""

from __future__ import annotations

import pytest

from spearmint.store.study import Study
from tests.spearmint.conftest import ONE_FLOAT, MakeExperiment

CODE = """def main(job_id, params):
    if job_id == 2:
        raise ValueError("unlucky")
    return {"objective": params["x"][0], "memory_gb": 90 if job_id == 3 else 10}
"""


def test_the_summary_reads_no_trial_but_those_it_shows(
    make_experiment: MakeExperiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = ONE_FLOAT + 'constraint { name: "memory_gb" max: 80 }\npruner: "MedianPruner"\n'
    experiment = make_experiment(CODE, config)
    monkeypatch.setattr(Study, "trials", lambda self: pytest.fail("all trials were read"))
    done = experiment.run("--max-finished-jobs=4", "--method=RandomChooser", "--verbose")
    assert done.returncode == 0, done.stderr
    assert "4 complete trials (1 broken), 3 feasible" in done.stdout
    assert "trial 2 failed: ValueError: unlucky" in done.stdout
    assert "no trial reported a value" in " ".join(done.stdout.split())
