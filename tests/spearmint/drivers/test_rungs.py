"""Trials that train in parts, as real jobs of the local driver, of Grid Engine and of pilots."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from spearmint.drivers import Driver
from spearmint.fidelity import Fidelity
from spearmint.store.study import Study
from spearmint.trial.attempts import read_attempts
from tests.spearmint.drivers.real_jobs import Killed, make_driver

__all__ = ["make_driver"]  # a fixture

HALVES = Fidelity(name="epochs", low=1, high=2, reduction=2)
CODE = """
import os
from pathlib import Path
from spearmint import report, steps

def main(job_id, params):
    checkpoint = Path(os.environ["SPEARMINT_TRIAL_DIR"], "epoch.txt")
    done = int(checkpoint.read_text()) if checkpoint.exists() else 0
    assert done == int(os.environ["SPEARMINT_STEPS_DONE"]), "the checkpoint of the part before"
    for epoch in steps(2, after=done):
        with open("epochs.txt", "a") as file:
            file.write(f"{job_id}.{epoch} ")
        checkpoint.write_text(str(epoch))
        report(epoch, job_id + 1 / epoch)
    return job_id + 1 / epoch
"""


def test_a_resumed_trial_trains_on_from_its_checkpoint_after_kills_of_the_controller(
    make_driver: Callable[[], Driver], make_loop, tmp_path: Path, monkeypatch
) -> None:
    for name in ("pause", "resume_paused", "complete"):
        with monkeypatch.context() as patched:
            original = getattr(Study, name)

            def killed(*arguments: object, original=original) -> object:
                original(*arguments)
                raise Killed

            patched.setattr(Study, name, killed)
            with contextlib.suppress(Killed):
                make_loop(make_driver(), fidelity=HALVES, finished=4, concurrent=2).run()
    search = make_loop(make_driver(), fidelity=HALVES, finished=4, concurrent=2)
    figures = search.run()
    assert (figures.paused + figures.complete, figures.broken) == (4, 0)
    assert figures.complete >= 2
    epochs = Counter((tmp_path / "epochs.txt").read_text().split())
    complete = [trial.id for trial in search.study.trials() if trial.value is not None]
    assert epochs == Counter([f"{n}.1" for n in (1, 2, 3, 4)] + [f"{n}.2" for n in complete])
    best = search.study.trials()[complete[0] - 1]
    assert (best.rungs, best.value) == ((best.id + 1.0,), best.id + 0.5)
    assert best.reports == {1: best.id + 1.0, 2: best.id + 0.5}
    reasons = [a.get("reason") for a in read_attempts(search.layout.folder(best.id))]
    assert reasons == ["paused at 1 epochs", None], "a line for each job"
