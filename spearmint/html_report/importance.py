"""How much each element of the space matters, by Optuna's PED-ANOVA, and its plot."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import optuna
from optuna.importance import PedAnovaImportanceEvaluator
from optuna.study import StudyDirection
from optuna.trial import create_trial

from spearmint.html_report.canvas import BLUE, INK, SOFT, Plot
from spearmint.html_report.digest import Digest, Element, number
from spearmint.html_report.scale import shorten
from spearmint.store.distributions import distributions, to_flat

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TITLE = "Importance"
_FEWEST = 10  # complete trials
_FEWEST_GOOD = 5  # PedAnovaImportanceEvaluator: "at least 5 trials above target_quantile"
_FEW_FOR_EACH = 5  # trials for each dimension; below that PED-ANOVA sees mostly chance
_MOST_BARS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The share of each element in what makes trials good.

    Attributes:
        order: All elements, the most important first; as in config.pb where nothing is known.
        shares: Share of each in the order above, their sum is 1; empty where nothing is known.
        quantile: The trials counted as good: this share of all.
        trials: How many were weighed.
        nothing: Why nothing is known; empty where it is.
    """

    order: tuple[Element, ...]
    shares: tuple[float, ...] = ()
    quantile: float = 0.0
    trials: int = 0
    nothing: str = ""


def evaluate(digest: Digest) -> Weights:
    """Weigh the elements by the complete trials with a finite value.

    Source: Watanabe et al. 2023, PED-ANOVA (arXiv:2304.10255), as Optuna has it.
    """
    elements = tuple(digest.elements())
    nothing = _nothing(digest, elements)
    if nothing:
        return Weights(order=elements, nothing=nothing)
    quantile = min(0.5, max(0.1, _FEWEST_GOOD / len(digest.finite)))
    # Against the whole space, not against the trials: a chooser soon tries good points only, and
    # then the good ones do not differ from the others.
    evaluator = PedAnovaImportanceEvaluator(target_quantile=quantile, evaluate_on_local=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = evaluator.evaluate(_study(digest))
    total = sum(found.values())
    if not total > 0:
        text = "Good trials lie everywhere: no variable stands out."
        return Weights(order=elements, nothing=text)
    by_name = {element.name: element for element in elements}
    names = sorted(found, key=lambda name: -found[name])
    return Weights(
        order=tuple(by_name[name] for name in names),
        shares=tuple(found[name] / total for name in names),
        quantile=quantile,
        trials=len(digest.finite),
    )


def _nothing(digest: Digest, elements: Sequence[Element]) -> str:
    values = {number(trial) for trial in digest.finite}
    if len(elements) < 2:
        return "There is one variable only, so nothing to compare it with."
    if len(digest.finite) < _FEWEST:
        return (
            f"Importance needs at least {_FEWEST} complete trials; there are {len(digest.finite)}."
        )
    if len(values) < 2:
        return "All trials have the same value, so no variable matters."
    return ""


def _study(digest: Digest) -> optuna.Study:
    """Return a study in memory: the stored one may change meanwhile."""
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
            params=to_flat(variables, trial.params), distributions=space, value=number(trial)
        )
        for trial in digest.finite
    )
    return study


def plot(weights: Weights) -> Plot:
    """Return the plot of the largest shares, or why there is none."""
    if weights.nothing:
        return Plot(name="importance", title=_TITLE, caption=weights.nothing)
    bars = min(_MOST_BARS, len(weights.order))
    caption = (
        "How narrowly each variable must be set for a trial to be among the best "
        f"{weights.quantile:.0%} (PED-ANOVA)."
    )
    if bars < len(weights.order):
        caption += f" The {bars} largest of {len(weights.order)}."
    if weights.trials < _FEW_FOR_EACH * len(weights.order):
        caption += f" A rough guess: {weights.trials} trials, {len(weights.order)} dimensions."
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
