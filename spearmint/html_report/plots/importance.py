"""The importance of each dimension of the space, by Optuna's PED-ANOVA, and its plot."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import optuna
from optuna.study import StudyDirection
from optuna.trial import create_trial

from spearmint.html_report.plots.canvas import BLUE, INK, SOFT, Plot
from spearmint.html_report.plots.digest import Digest, Element, number
from spearmint.html_report.plots.ped_anova import ped_anova
from spearmint.html_report.plots.scale import shorten
from spearmint.store.distributions import distributions, to_flat

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TITLE = "Importance"
_FEWEST = 10  # complete trials
_FEWEST_GOOD = 5  # PedAnovaImportanceEvaluator: "at least 5 trials above target_quantile"
_FEW_FOR_EACH = 5  # trials for each dimension; with fewer trials, noise dominates PED-ANOVA
_MOST_BARS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The share of each dimension in the importance.

    Attributes:
        order: All dimensions, most important first, then those that are not active in all trials;
            in the order of config.pb if unknown.
        shares: Shares in the same order, with sum 1; none for conditional dimensions; empty if
            unknown.
        quantile: The fraction of the trials that counts as good.
        trials: Number of trials that were evaluated.
        nothing: Why the importance is unknown; empty if it is known.
    """

    order: tuple[Element, ...]
    shares: tuple[float, ...] = ()
    quantile: float = 0.0
    trials: int = 0
    nothing: str = ""


def evaluate(digest: Digest) -> Weights:
    """Evaluate the importance of each dimension from the complete trials with a finite value.

    Source: Watanabe et al. 2023, PED-ANOVA (arXiv:2304.10255), in Optuna's implementation.
    """
    elements = tuple(digest.elements())
    nothing = _nothing(digest, elements)
    if nothing:
        return Weights(order=elements, nothing=nothing)
    quantile = min(0.5, max(0.1, _FEWEST_GOOD / len(digest.finite)))
    # Compare with the whole space, not with the trials: a chooser soon proposes only good points,
    # and then good trials do not differ from the others.
    evaluator = ped_anova()(target_quantile=quantile, evaluate_on_local=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = evaluator.evaluate(_study(digest))
    total = sum(found.values())
    if not total > 0:
        text = "The best trials are spread over the whole space: no variable stands out."
        return Weights(order=elements, nothing=text)
    by_name = {element.name: element for element in elements}
    names = sorted(found, key=lambda name: -found[name])
    # PED-ANOVA compares the variables that all trials have.
    conditional = tuple(element for element in elements if element.name not in found)
    return Weights(
        order=(*(by_name[name] for name in names), *conditional),
        shares=tuple(found[name] / total for name in names),
        quantile=quantile,
        trials=len(digest.finite),
    )


def _nothing(digest: Digest, elements: Sequence[Element]) -> str:
    values = {number(trial) for trial in digest.finite}
    if len(elements) < 2:
        return "The space has only one dimension, so there is nothing to compare it with."
    if sum(all(e.of(trial) is not None for trial in digest.finite) for e in elements) < 2:
        return "Fewer than two dimensions are active in all trials, so there is nothing to compare."
    if len(digest.finite) < _FEWEST:
        return (
            f"Importance needs at least {_FEWEST} complete trials; there are {len(digest.finite)}."
        )
    if len(values) < 2:
        return "All trials have the same value, so no variable is important."
    return ""


def _study(digest: Digest) -> optuna.Study:
    """Return a study in memory, because the stored study can change during the evaluation."""
    variables = digest.experiment.variables
    space = distributions(variables)
    direction = StudyDirection.MAXIMIZE if digest.experiment.maximize else StudyDirection.MINIMIZE
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        study = optuna.create_study(direction=direction)
    finally:
        optuna.logging.set_verbosity(verbosity)
    study.add_trials(
        create_trial(
            params=flat,
            distributions={name: space[name] for name in flat},
            value=number(trial),
        )
        for trial, flat in ((t, to_flat(variables, t.params)) for t in digest.finite)
    )
    return study


def plot(weights: Weights) -> Plot:
    """Return the plot of the largest shares, or the reason why there is nothing to plot."""
    if weights.nothing:
        return Plot(name="importance", title=_TITLE, caption=weights.nothing)
    bars = min(_MOST_BARS, len(weights.shares))
    caption = (
        f"How much the best {weights.quantile:.0%} of the trials restrict each variable, compared "
        "with the whole space (PED-ANOVA). optuna-dashboard compares them with the other trials, "
        "so its shares differ."
    )
    dimensions = len(weights.shares)
    if dimensions < len(weights.order):
        caption += " Variables that are not active in all trials are not compared."
    if bars < dimensions:
        caption += f" Shows the {bars} largest of {dimensions} shares."
    if weights.trials < _FEW_FOR_EACH * dimensions:
        caption += f" A rough estimate: {weights.trials} trials for {dimensions} dimensions."
    return Plot(
        name="importance",
        title=_TITLE,
        caption=caption,
        draw=partial(_draw, weights, bars),
        size_in=(9.6, 1.1 + 0.38 * max(bars, 3)),
    )


def _draw(weights: Weights, bars: int, figure: Figure) -> None:
    axes = figure.add_subplot()
    shares = weights.shares[:bars]
    names = [shorten(element.name, 32) for element in weights.order[:bars]]
    rows = range(bars)
    axes.barh(rows, shares, height=0.62, color=BLUE)
    for row, share in zip(rows, shares, strict=True):
        axes.text(
            share + 0.008 * shares[0], row, f"{share:.1%}", va="center", fontsize=9, color=SOFT
        )
    axes.set_yticks(rows, names, color=INK)
    axes.set_ylim(bars - 0.4, -0.6)
    axes.set_xlim(0.0, shares[0] * 1.12)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.set_xlabel("share of importance")
    axes.grid(visible=True, axis="x")
    axes.spines["left"].set_visible(False)
