"""What a report shows: the trials of a search, read, and its plots, drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spearmint.html_report.page import Picture
from spearmint.html_report.plots import (
    best_value,
    canvas,
    curves,
    importance,
    parallel,
    pareto_front,
    regions,
    slices,
)
from spearmint.html_report.plots.canvas import Plot
from spearmint.html_report.plots.digest import Digest
from spearmint.layout import Layout
from spearmint.model import Trial, TrialState
from spearmint.store.session import Session
from spearmint.trial.reporting import read_reports
from spearmint.view.strategy import strategy_lines


def read_digest(session: Session) -> Digest:
    """Return the current state of the search."""
    trials = [_with_reports(trial, session.layout) for trial in session.study.trials()]
    started, ended = session.study.span()
    return Digest.of(
        session.experiment,
        trials,
        started=started,
        ended=ended,
        layout=session.layout,
        recommendation=session.study.recommended(),
        strategy=strategy_lines(session.study),
    )


def _with_reports(trial: Trial, layout: Layout) -> Trial:
    """Add the values that a running trial has reported so far, which the study does not store."""
    if trial.state is not TrialState.RUNNING or trial.reports:
        return trial
    return replace(trial, reports=read_reports(layout.folder(trial.id).reports))


def pictures(digest: Digest) -> list[Picture]:
    """Return all plots of a search; a plot with nothing to show has a reason instead of a PNG."""
    if digest.experiment.has_front:
        return _drawn([pareto_front.plot(digest)])
    weights = importance.evaluate(digest)
    plots = [
        best_value.plot(digest),
        parallel.plot(digest, weights.order),
        importance.plot(weights),
        slices.plot(digest, weights.order),
        curves.plot(digest),
    ]
    return _drawn(plots)


def pictures_of_regions(digests: Sequence[Digest]) -> list[Picture]:
    """Return the plots that compare regions."""
    return _drawn([regions.plot(digests)])


def _drawn(plots: Sequence[Plot]) -> list[Picture]:
    return [
        Picture(plot=plot, png=canvas.png(plot) if plot.draw is not None else None)
        for plot in plots
    ]
