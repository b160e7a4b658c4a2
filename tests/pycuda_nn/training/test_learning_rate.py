from __future__ import annotations

import numpy as np
import pytest

from pycuda_nn.config import TrainConfig
from pycuda_nn.training.learning_rate import SCHEDULES, learning_rates


def all_rates(config: TrainConfig, steps: int) -> np.ndarray:
    return np.concatenate([learning_rates(config, e, steps) for e in range(config.epochs)])


def test_constant() -> None:
    rates = all_rates(TrainConfig(lr=0.3, epochs=3), 4)
    np.testing.assert_array_equal(rates, np.full(12, 0.3))


def test_step_falls_by_the_factor_after_its_epochs() -> None:
    config = TrainConfig(lr=1.0, schedule="step", step_epochs=2, step_factor=0.5, epochs=5)
    want = np.repeat([1.0, 1.0, 0.5, 0.5, 0.25], 3)
    np.testing.assert_allclose(all_rates(config, 3), want)


def test_cosine_starts_at_lr_passes_the_middle_and_ends_at_lr_min() -> None:
    config = TrainConfig(lr=1.0, lr_min=0.2, schedule="cosine", epochs=10)
    rates = all_rates(config, 10)
    assert rates[0] == 1.0
    assert rates[50] == pytest.approx(0.6)
    assert rates[-1] == pytest.approx(0.2, abs=1e-3)
    assert (np.diff(rates) < 0).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_warm_up_rises_by_a_constant_amount_then_the_schedule_begins(schedule: str) -> None:
    config = TrainConfig(lr=1.0, schedule=schedule, warmup_epochs=1.5, step_epochs=1, epochs=6)
    rates = all_rates(config, 4)
    np.testing.assert_allclose(rates[:6], np.arange(1, 7) / 6)
    plain = TrainConfig(lr=1.0, schedule=schedule, step_epochs=1, epochs=6)
    assert rates[6] == learning_rates(plain, 0, 4)[0]
    if schedule == "step":  # counted from the end of the warm-up
        np.testing.assert_allclose(rates[6:12], [1, 1, 1, 1, 0.1, 0.1])


def test_rates_of_an_epoch_do_not_depend_on_others() -> None:
    config = TrainConfig(schedule="cosine", warmup_epochs=1, epochs=5)
    assert learning_rates(config, 3, 7).tolist() == all_rates(config, 7)[21:28].tolist()
