from __future__ import annotations

import math

import numpy as np
import pytest
from optuna.trial import FrozenTrial, TrialState, create_trial

from spearmint.choosers.history import DIVERGED, Finals


def complete(final: float, **reports: float) -> FrozenTrial:
    return create_trial(value=final, intermediate_values=_steps(reports))


def pruned(**reports: float) -> FrozenTrial:
    return create_trial(state=TrialState.PRUNED, intermediate_values=_steps(reports))


def _steps(reports: dict[str, float]) -> dict[int, float]:
    return {int(name[1:]): value for name, value in reports.items()}


def test_it_comes_to_what_those_that_went_on_came_to() -> None:
    rng = np.random.default_rng(0)
    at_5 = rng.uniform(1, 3, 20)
    done = [complete(0.5 + 0.25 * v, s1=9.0, s5=v, s9=0.5 + 0.25 * v) for v in at_5]
    finals = Finals([*done, complete(50.0, s5=1.0)])  # an outlier changes a median little
    assert finals.of(pruned(s1=9.0, s5=4.0)) == pytest.approx(1.5, rel=0.02)


def test_curves_never_cross_nor_part() -> None:
    falling = Finals([complete(3.0 - v, s2=v) for v in (0.0, 1.0, 2.0)])
    assert falling.of(pruned(s2=9.0)) == pytest.approx(2.0)  # slope 0: the median of all
    steep = Finals([complete(3 * v, s2=v) for v in (0.0, 1.0, 2.0)])
    assert steep.of(pruned(s2=9.0)) == pytest.approx(11.0)
    level = Finals([complete(v, s2=1.0) for v in (3.0, 4.0, 5.0)])
    assert level.of(pruned(s2=2.0)) == pytest.approx(5.0)


@pytest.mark.parametrize("last", [math.nan, math.inf, -math.inf])
def test_one_that_diverged_or_reported_nothing_comes_to_infinity(last: float) -> None:
    finals = Finals([complete(0.1 * v, s1=v, s2=v) for v in (1.0, 2.0, 3.0)])
    assert finals.of(pruned(s1=1.0, s2=last)) == math.inf
    assert finals.of(pruned()) == math.inf
    one = pruned(s1=1.0)
    one.set_user_attr(DIVERGED, 2)
    assert finals.of(one) == math.inf
    one.set_user_attr(DIVERGED, 0)
    assert finals.of(one) == pytest.approx(0.1)


def test_the_last_report_where_nothing_else_is_known() -> None:
    few = Finals([complete(0.1, s3=1.0), complete(0.2, s3=2.0), complete(0.3, s4=2.0)])
    assert few.of(pruned(s3=5.0)) == 5.0
    broken = [complete(math.inf, s3=1.0), complete(0.1, s3=math.inf), complete(0.1)]
    assert Finals(broken * 3).of(pruned(s3=5.0)) == 5.0
