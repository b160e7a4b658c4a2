"""Larger minibatches: the schedule by hand, the checkpoint, and what each backend is given."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pycuda_nn as nn
from pycuda_nn.backends.numpy.session import NumpyBackend
from pycuda_nn.errors import CheckpointError, ConfigError, TrainingDiverged
from pycuda_nn.network import Network
from pycuda_nn.protocols import Session, TrainingRecipe
from pycuda_nn.training import checkpoint as files
from pycuda_nn.training.large_batch import step_settings, summary
from pycuda_nn.training.learning_rate import learning_rates
from spearmint.training import scaled_lr
from tests.pycuda_nn.conftest import blobs

Parts = tuple[nn.Dataset, nn.Dataset, nn.Dataset]

SGD = nn.TrainConfig(
    hidden=(8,), optimizer="sgd", lr=0.02, epochs=20, batch_size=8, scale_batch=4, seed=3
)


def rates_of(config: nn.TrainConfig, steps: int) -> npt.NDArray[np.float64]:
    return np.concatenate([learning_rates(config, e, steps) for e in range(config.epochs)])


def test_the_schedule_by_hand() -> None:
    config = nn.TrainConfig(optimizer="sgd", lr=0.1, scale_batch=4, epochs=20)
    # A tenth of 20 epochs of 3 steps: 6 steps, each 0.05 above the last.
    warm = [0.1, 0.15, 0.2, 0.25, 0.3, 0.35]
    np.testing.assert_allclose(rates_of(config, 3), [*warm, *[0.4] * 54], rtol=1e-12)


def test_cosine_by_hand() -> None:
    config = nn.TrainConfig(
        lr=0.1,
        lr_min=0.01,
        scale_batch=9,
        scale_rule="sqrt",
        schedule="cosine",
        epochs=4,
        warmup_epochs=1,
    )
    after = [0.03 + 0.27 * (1 + np.cos(np.pi * step / 6)) / 2 for step in range(6)]
    np.testing.assert_allclose(rates_of(config, 2), [0.1, 0.2, *after], rtol=1e-12)


@pytest.mark.parametrize(
    ("epochs", "given_epochs", "warm"),
    [(90, 0, 5), (50, 0, 5), (20, 0, 2), (1, 0, 0.1), (20, 8, 8)],
)  # fmt: skip
def test_warm_up_takes_five_epochs_or_a_tenth_or_what_is_given(
    epochs: int, given_epochs: float, warm: float
) -> None:
    config = nn.TrainConfig(scale_batch=2, epochs=epochs, warmup_epochs=given_epochs)
    assert step_settings(config).warmup_epochs == warm


def test_a_factor_of_1_changes_nothing() -> None:
    config = nn.TrainConfig(lr=0.1, warmup_epochs=2, epochs=5, scale_rule="sqrt", batch_size=10)
    assert summary(config) is None
    assert step_settings(config).batch_size == 10
    np.testing.assert_allclose(rates_of(config, 2)[:5], [0.025, 0.05, 0.075, 0.1, 0.1])


@settings(max_examples=60, deadline=None)
@given(
    factor=st.integers(2, 64),
    rule=st.sampled_from(["linear", "sqrt"]),
    schedule=st.sampled_from(["constant", "step", "cosine"]),
    epochs=st.integers(1, 30),
    steps=st.integers(1, 20),
    warm=st.sampled_from([0.0, 0.4, 1.0]),
)
def test_rates_are_those_of_the_base_times_the_factor_after_the_rule_of_spearmint(
    factor: int, rule: str, schedule: str, epochs: int, steps: int, warm: float
) -> None:
    config = nn.TrainConfig(
        lr=0.05, lr_min=0.001, scale_batch=factor, scale_rule=rule, schedule=schedule,
        epochs=epochs, warmup_epochs=warm,
    )  # fmt: skip
    rates, used = rates_of(config, steps), step_settings(config)
    n = round(used.warmup_epochs * steps)
    expected = [
        scaled_lr(0.05, factor, 1, warmup_steps=n, step=step, rule=rule) for step in range(n)
    ]
    np.testing.assert_allclose(rates[:n], expected, rtol=1e-12)
    base = dataclasses.replace(config, scale_batch=1, warmup_epochs=used.warmup_epochs)
    times = used.lr / config.lr
    np.testing.assert_allclose(rates[n:], times * rates_of(base, steps)[n:], rtol=1e-12)


class Recorder(NumpyBackend):
    """Trains with numpy, and keeps what sessions were given."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[int] = []
        self.rates: list[npt.NDArray[np.float64]] = []

    def open(self, network: Network, recipe: TrainingRecipe, parts: Any, params: Any) -> Session:
        self.batches.append(recipe.batch_size)
        session = super().open(network, recipe, parts, params)
        run = session.run_epoch

        def recorded(order: Any, rates: Any) -> Any:
            self.rates.append(np.array(rates))
            return run(order, rates)

        session.run_epoch = recorded  # type: ignore[method-assign]
        return session


def test_a_backend_is_given_the_larger_minibatch_and_its_rates(parts: Parts) -> None:
    backend, train = Recorder(), parts[0]
    nn.train(SGD, train, backend=backend)
    steps = -(-len(train) // 32)
    assert backend.batches == [32]
    assert [len(rates) for rates in backend.rates] == [steps] * 20
    np.testing.assert_array_equal(np.concatenate(backend.rates), rates_of(SGD, steps))
    assert backend.rates[0][0] == 0.02
    assert backend.rates[-1][-1] == pytest.approx(0.08)


def test_losses_are_weighted_by_the_rows_of_the_larger_minibatch(parts: Parts) -> None:
    """After a warm-up of less than half a step the training is one with these settings."""
    train, valid, _ = parts
    config = dataclasses.replace(SGD, warmup_epochs=1e-6)
    plain = dataclasses.replace(SGD, scale_batch=1, batch_size=32, lr=0.08)
    one, two = (nn.train(each, train, valid, backend="numpy") for each in (config, plain))
    np.testing.assert_array_equal(one.model.params, two.model.params)
    assert [report.train_loss for report in one.history] == [
        report.train_loss for report in two.history
    ]


def test_many_networks_train_as_alone(parts: Parts) -> None:
    train, valid, _ = parts
    configs = [dataclasses.replace(SGD, scale_batch=times) for times in (1, 2, 4)]
    results = nn.train_many(configs, train, valid, backend="numpy")
    for config, result in zip(configs, results, strict=True):
        alone = nn.train(config, train, valid, backend="numpy")
        assert isinstance(result, nn.TrainResult)
        np.testing.assert_array_equal(result.model.params, alone.model.params)


def test_one_line_says_what_changes(parts: Parts, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="pycuda_nn"):
        nn.train(SGD, parts[0], backend="numpy")
    line = "minibatch 8 -> 32, lr 0.02 -> 0.08, warm-up 2 epochs from 0.02"
    assert caplog.messages[0] == line
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="pycuda_nn"):
        nn.train_many([SGD, dataclasses.replace(SGD, l2=0.1)], parts[0], backend="numpy")
    assert caplog.messages.count(line) == 1


@pytest.mark.parametrize(
    ("optimizer", "rule", "hint"),
    [("adam", "linear", True), ("adam", "sqrt", False), ("sgd", "linear", False)],
)
def test_adam_with_the_linear_rule_has_a_hint(optimizer: str, rule: str, hint: bool) -> None:
    line = summary(nn.TrainConfig(optimizer=optimizer, scale_rule=rule, scale_batch=2))
    assert line is not None
    assert ("scale_rule = sqrt" in line) == hint


class Stopped(Exception):
    pass


def stop_after(epoch: int) -> Any:
    def stop(report: nn.EpochReport) -> None:
        if report.epoch == epoch:
            raise Stopped

    return stop


@pytest.mark.parametrize("epoch", [1, 2, 5])
def test_resume_is_exact_in_and_after_the_warm_up(epoch: int, parts: Parts, tmp_path: Path) -> None:
    train, valid, _ = parts
    path = tmp_path / "c.npz"
    whole = nn.train(SGD, train, valid, backend="numpy")
    with pytest.raises(Stopped):
        nn.train(SGD, train, valid, backend="numpy", checkpoint=path, on_epoch=stop_after(epoch))
    assert files.load(path).config == SGD
    resumed = nn.train(SGD, train, valid, backend="numpy", checkpoint=path, resume=True)
    np.testing.assert_array_equal(resumed.model.params, whole.model.params)
    assert [report.lr for report in resumed.history] == [report.lr for report in whole.history]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"scale_batch": 2}, "scale_batch: 4 in the checkpoint, 2 now"),
        ({"scale_batch": 1}, "scale_batch: 4 in the checkpoint, 1 now"),
        ({"scale_rule": "sqrt"}, "scale_rule: 'linear' in the checkpoint, 'sqrt' now"),
        ({"warmup_epochs": 3.0}, "warmup_epochs: 0.0 in the checkpoint, 3.0 now"),
        ({"epochs": 24}, "set warmup_epochs = 2"),
    ],
)
def test_another_value_is_refused(
    changes: dict[str, Any], named: str, parts: Parts, tmp_path: Path
) -> None:
    path = tmp_path / "c.npz"
    nn.train(SGD, parts[0], backend="numpy", checkpoint=path)
    with pytest.raises(CheckpointError) as error:
        nn.train(
            dataclasses.replace(SGD, **changes), parts[0], backend="numpy", checkpoint=path,
            resume=True,
        )  # fmt: skip
    assert named in str(error.value)


def test_more_epochs_with_the_same_warm_up_continue(parts: Parts, tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    nn.train(SGD, parts[0], backend="numpy", checkpoint=path)
    longer = dataclasses.replace(SGD, epochs=24, warmup_epochs=2.0)
    resumed = nn.train(longer, parts[0], backend="numpy", checkpoint=path, resume=True)
    whole = nn.train(longer, parts[0], backend="numpy")
    np.testing.assert_array_equal(resumed.model.params, whole.model.params)


def test_a_file_without_scaling_can_be_read_by_older_versions(parts: Parts, tmp_path: Path) -> None:
    path, plain = tmp_path / "c.npz", dataclasses.replace(SGD, scale_batch=1)
    nn.train(plain, parts[0], backend="numpy", checkpoint=path)
    assert "scale_batch" not in path.read_bytes().decode("latin-1")
    other = dataclasses.replace(plain, scale_rule="sqrt", epochs=21)  # the rule is not used
    resumed = nn.train(other, parts[0], backend="numpy", checkpoint=path, resume=True)
    assert len(resumed.history) == 21


def test_a_minibatch_of_more_rows_than_there_are_is_refused() -> None:
    data = blobs(100)
    config = dataclasses.replace(SGD, batch_size=16)
    for times, code in ((6, None), (7, 2)):
        scaled = dataclasses.replace(config, scale_batch=times)
        if code is None:
            nn.train(scaled, data, backend="numpy")
            continue
        with pytest.raises(ConfigError) as error:
            nn.train(scaled, data, backend="numpy")
        assert "112 rows" in error.value.what
        assert "at most 6" in error.value.fix
    tiny = dataclasses.replace(config, batch_size=64, scale_batch=2)
    with pytest.raises(ConfigError, match="Remove scale_batch"):
        nn.train(tiny, data, backend="numpy")


def test_a_divergence_names_the_factor_not_a_rate_above_lr(parts: Parts) -> None:
    config = dataclasses.replace(SGD, lr=1e19)
    with pytest.raises(TrainingDiverged) as error:
        nn.train(config, parts[0], backend="numpy")
    assert "scale_batch = 4" in error.value.fix


@pytest.mark.parametrize(
    ("key", "value"),
    [("scale_batch", 0), ("scale_batch", 2.5), ("scale_batch", 1 << 21), ("scale_rule", "cube")],
)
def test_invalid_values_are_named(key: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"{key} = "):
        nn.TrainConfig.from_mapping({key: value})
