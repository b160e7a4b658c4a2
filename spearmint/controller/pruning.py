"""Whether the values that a running trial reports are a reason to stop it."""

from __future__ import annotations

import math

from spearmint.controller.running_trial import RunningTrial
from spearmint.store.study import Study
from spearmint.trial.reporting import read_reports


def has_bad_reports(study: Study, running: RunningTrial) -> bool:
    """Store the new reports of a trial, and return whether to prune it."""
    if not running.new_reports() or running.folder.result.exists():
        return False
    reports = read_reports(running.folder.reports)
    running.trial = study.report(running.trial, reports)
    if reports and not math.isfinite(reports[max(reports)]):
        return True
    return study.should_prune(running.trial)
