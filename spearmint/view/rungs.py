"""How many trials reached each rung, and which rungs are compared, for ``spearmint status``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spearmint.fidelity import Climber, Fidelity, complete_losses, lowest_trusted, rungs_text
from spearmint.store.study import Study


def rungs_data(study: Study) -> dict[str, object]:
    """Return how many trials reached each rung, if there are rungs, and the first one compared."""
    fidelity = study.experiment.fidelity
    if fidelity is None:
        return {}
    trials = study.climbers()
    sizes = [len(each.losses) for each in trials.values()]
    reached = {str(step): sum(n > i for n in sizes) for i, step in enumerate(fidelity.rungs)}
    return {"rungs": reached, "compared_from": fidelity.rungs[_lowest(fidelity, trials)]}


def rung_lines(study: Study) -> Iterator[str]:
    """Yield ``Rungs: 40 to 3 epochs, 13 to 9``, and a line if some of them are not compared."""
    fidelity = study.experiment.fidelity
    if fidelity is None:
        return
    trials = study.climbers()
    yield f"Rungs: {rungs_text(fidelity, trials.values())}"
    if lowest := _lowest(fidelity, trials):
        until, before = fidelity.rungs[lowest], fidelity.rungs[lowest - 1]
        yield (
            f"The order at {before} {fidelity.name} does not predict the order at {fidelity.high}: "
            f"new trials continue to {until}"
        )


def _lowest(fidelity: Fidelity, trials: Mapping[int, Climber]) -> int:
    known = [trials[number] for number in sorted(trials)]
    return lowest_trusted(complete_losses(known, fidelity), len(fidelity.rungs))
