"""How the chooser works, in lines: earlier searches and their weights, looking elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from spearmint.formatting import plain
from spearmint.store.strategy import Elsewhere, Lesson, Repetitions
from spearmint.store.study import Study

_MOST_NAMED = 5


def strategy_data(study: Study) -> dict[str, object]:
    """Return what the search learns from, whether it looks elsewhere and repeats; if it does."""
    lessons, elsewhere, repeated = study.learned(), study.elsewhere(), study.repetitions()
    return {
        **({"learns_from": [each.to_json() for each in lessons]} if lessons else {}),
        **({"elsewhere": elsewhere.to_json()} if elsewhere is not None else {}),
        **({"replicates": repeated.to_json()} if repeated is not None else {}),
    }


def strategy_lines(study: Study) -> Iterator[str]:
    """Yield ``Learns from 2 searches: old (weight 0.62), older (weight 0)``, and where it looks."""
    if lessons := study.learned():
        yield _learned(lessons)
    if (elsewhere := study.elsewhere()) is not None:
        yield _looks(elsewhere)
    if (repeated := study.repetitions()) is not None:
        yield _repeats(repeated)


def region_lines(studies: list[Study]) -> Iterator[str]:
    """Yield the same for regions: how many learn, and which of them look elsewhere."""
    learned = [study.learned() for study in studies]
    useful = [[each for each in lessons if each.weight] for lessons in learned]
    if count := sum(map(bool, learned)):
        yield (
            f"Learn from other searches: {count} regions, {sum(map(bool, useful))} of them with "
            "their models"
        )
    found = [(study.experiment.region, study.elsewhere()) for study in studies]
    looking = [f"{region} (since trial {each.since})" for region, each in found if each is not None]
    if looking:
        yield f"Look elsewhere: {_listed(looking)}"
    again = [(study.experiment.region, study.repetitions()) for study in studies]
    repeating = [f"{region} ({each.trials} trials)" for region, each in again if each is not None]
    if repeating:
        yield f"Repeat good points under noise: {_listed(repeating)}"


def _learned(lessons: list[Lesson]) -> str:
    counted = "1 search" if len(lessons) == 1 else f"{len(lessons)} searches"
    return f"Learns from {counted}: {_listed([_lesson(each) for each in lessons])}"


def _lesson(lesson: Lesson) -> str:
    name = plain(lesson.search)
    if not lesson.has_model:
        return f"{name} (first points only)"
    known = "no weight yet" if lesson.weight is None else f"weight {lesson.weight:g}"
    return f"{name} ({known})"


def _looks(elsewhere: Elsewhere) -> str:
    trials = "1 trial" if elsewhere.trials == 1 else f"{elsewhere.trials} trials"
    restarts = "1 restart" if elsewhere.restarts == 1 else f"{elsewhere.restarts} restarts"
    return f"Converged: looks elsewhere since trial {elsewhere.since}, {trials} in {restarts}"


def _repeats(repeated: Repetitions) -> str:
    trials = "1 trial repeats" if repeated.trials == 1 else f"{repeated.trials} trials repeat"
    return f"Noisy values: {trials} good points since trial {repeated.since}"


def _listed(texts: list[str]) -> str:
    more = f" and {len(texts) - _MOST_NAMED} more" if len(texts) > _MOST_NAMED else ""
    return ", ".join(texts[:_MOST_NAMED]) + more
