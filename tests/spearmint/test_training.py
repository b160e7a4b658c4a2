from __future__ import annotations

import pytest

from spearmint.training import scaled_lr


@pytest.mark.parametrize(
    ("batch", "rule", "expected"),
    [
        (8192, "linear", 3.2),  # table 1 of Goyal et al. 2017: 0.1 kn / 256
        (256, "linear", 0.1),
        (64, "linear", 0.025),
        (1024, "sqrt", 0.2),
        (64, "sqrt", 0.05),
    ],
)
def test_the_rate_follows_the_batch(batch: int, rule: str, expected: float) -> None:
    assert scaled_lr(0.1, batch, 256, rule=rule) == pytest.approx(expected)


def test_the_warm_up_grows_in_equal_increments_from_the_base_rate() -> None:
    rates = [scaled_lr(0.1, 1280, 256, warmup_steps=4, step=step) for step in range(7)]
    assert rates == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.5, 0.5])


def test_a_smaller_batch_needs_no_warm_up() -> None:
    assert scaled_lr(0.1, 64, 256, warmup_steps=100, step=0) == pytest.approx(0.025)


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"batch": 0}, "batch 0"),
        ({"base_batch": -1}, "-1"),
        ({"warmup_steps": -5}, "-5"),
        ({"step": -1}, "-1"),
        ({"rule": "cubic"}, "cubic"),
    ],
)
def test_wrong_arguments_are_told(change: dict, fact: str) -> None:
    given = {"lr": 0.1, "batch": 256, "base_batch": 256, **change}
    with pytest.raises(ValueError, match=fact):
        scaled_lr(**given)
