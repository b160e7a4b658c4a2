from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import pycuda_nn as nn
from pycuda_nn.backends.numpy.session import NumpyBackend, NumpySession
from pycuda_nn.errors import ConfigError, DataError, TrainingDiverged
from pycuda_nn.protocols import Metrics, Session
from pycuda_nn.training.history import EpochReport, History

Parts = tuple[nn.Dataset, nn.Dataset, nn.Dataset]
SMALL = nn.TrainConfig(hidden=(16,), epochs=8, batch_size=16, lr=0.01)


def losses(result: nn.TrainResult) -> list[tuple[float, float | None]]:
    return [(report.train_loss, report.valid_loss) for report in result.history]


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_learns_the_blobs(parts: Parts, activation: str, optimizer: str) -> None:
    train, valid, test = parts
    config = dataclasses.replace(SMALL, activation=activation, optimizer=optimizer, epochs=40)
    result = nn.train(config, train, valid)
    assert nn.evaluate(result.model, test).error < 0.1
    assert result.history[-1].train_loss < 0.5 * result.history[0].train_loss


def test_digits_to_97_percent() -> None:
    train, valid, test = nn.split(nn.load_data("digits"), seed=0)
    config = nn.TrainConfig(
        hidden=(128, 64), dropout=0.1, l2=1e-4, optimizer="sgd", lr=0.05, momentum=0.9,
        nesterov=True, schedule="cosine", warmup_epochs=1, epochs=30, batch_size=64, seed=1,
    )  # fmt: skip
    result = nn.train(config, train, valid)
    assert nn.evaluate(result.model, test).error < 0.05
    again = nn.train(config, nn.concat(train, valid))
    assert nn.evaluate(again.model, test).error < 0.05
    assert (result.model.predict(test.x) == test.y).mean() > 0.95


def test_same_seed_same_bits_other_seed_other_bits(parts: Parts) -> None:
    config = dataclasses.replace(SMALL, dropout=0.3)
    first, second = nn.train(config, *parts[:2]), nn.train(config, *parts[:2])
    assert losses(first) == losses(second)
    np.testing.assert_array_equal(first.model.params, second.model.params)
    other = nn.train(dataclasses.replace(config, seed=1), *parts[:2])
    assert losses(first) != losses(other)


def test_dropout_is_for_training_only(parts: Parts) -> None:
    config = dataclasses.replace(SMALL, dropout=0.5)
    model = nn.train(config, *parts[:2]).model
    np.testing.assert_array_equal(model.predict_proba(parts[2].x), model.predict_proba(parts[2].x))
    plain = nn.train(SMALL, *parts[:2])
    assert plain.history[0].train_loss != nn.train(config, *parts[:2]).history[0].train_loss


def test_logistic_and_two_class_softmax_agree_on_labels() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4))
    y = np.where(x[:, 0] + x[:, 1] > 0, "yes", "no")
    data = nn.Dataset.from_arrays(x, y)
    for loss in ("logistic", "softmax"):
        model = nn.train(dataclasses.replace(SMALL, loss=loss, epochs=30), data).model
        assert (model.predict(x) == y).mean() > 0.97
        shares = model.predict_proba(x)
        assert shares.shape == (300, 2)
        np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-5)
        assert nn.evaluate(model, data).error == pytest.approx(1 - (model.predict(x) == y).mean())


def test_regression_error_is_the_root_mean_squared_error() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    y = np.stack([x[:, 0] - x[:, 1], 2 * x[:, 2]], axis=1)
    data = nn.Dataset.from_arrays(x, y)
    model = nn.train(dataclasses.replace(SMALL, epochs=40, hidden=()), data).model
    metrics = nn.evaluate(model, data)
    residual = model.predict(x) - y
    assert metrics.error == pytest.approx(math.sqrt((residual**2).mean()), rel=1e-3)
    assert metrics.loss == pytest.approx(0.5 * (residual**2).sum(axis=1).mean(), rel=1e-3)
    assert metrics.error < 0.1


def test_metrics_are_means_over_rows_in_pieces() -> None:
    """3,000 rows are three pieces of different lengths."""
    rng = np.random.default_rng(0)
    data = nn.Dataset.from_arrays(rng.normal(size=(3000, 3)), rng.integers(0, 3, 3000))
    model = nn.train(dataclasses.replace(SMALL, epochs=1), data).model
    shares = model.predict_proba(data.x)
    metrics = nn.evaluate(model, data)
    picked = shares[np.arange(3000), data.y].astype(float)
    assert metrics.loss == pytest.approx(-np.log(picked).mean(), rel=1e-5)
    assert metrics.error == (shares.argmax(axis=1) != data.y).mean()


class Scripted(NumpySession):
    """Returns the validation losses of a list; the first weight is the number of the epoch."""

    script: list[float]

    def run_epoch(self, order: np.ndarray, learning_rates: np.ndarray) -> np.ndarray:
        self._params[0] += 1
        return np.ones(len(learning_rates), dtype=np.float32)

    def evaluate(self, part: str) -> Metrics:
        return Metrics(loss=self.script[int(self._params[0]) - 1], error=0.5)


class ScriptedBackend(NumpyBackend):
    def __init__(self, script: list[float]) -> None:
        super().__init__()
        self.script = script

    def open(self, network, recipe, parts, params) -> Session:  # type: ignore[no-untyped-def]
        session = Scripted(network, recipe, parts, params)
        session._params[0] = 0
        session.script = self.script
        return session


def test_patience_stops_and_gives_back_the_best_weights(parts: Parts) -> None:
    backend = ScriptedBackend([5, 4, 3, 3, 3.5, 2, 1])
    config = nn.TrainConfig(epochs=7, patience=3)
    seen: list[int] = []
    result = nn.train(
        config, *parts[:2], backend=backend, on_epoch=lambda report: seen.append(report.epoch)
    )
    assert seen == [1, 2, 3, 4, 5, 6, 7]  # epochs 4 and 5 are fewer than the patience
    assert result.best.epoch == 7
    short = nn.train(dataclasses.replace(config, patience=2), *parts[:2], backend=backend)
    assert (len(short.history), short.best.epoch, short.stopped_early) == (5, 3, True)
    assert short.model.params[0] == 3
    patient = nn.train(dataclasses.replace(config, patience=None, epochs=5), *parts[:2],
                       backend=backend)  # fmt: skip
    assert (patient.model.params[0], patient.best.epoch, patient.stopped_early) == (5, 3, False)


def test_monitor_chooses_the_value_that_counts() -> None:
    def report(epoch: int, loss: float, error: float) -> EpochReport:
        return EpochReport(
            epoch=epoch, train_loss=1, valid_loss=loss, valid_error=error, lr=1, seconds=1
        )

    for monitor, best in (("loss", 1), ("error", 2)):
        config, history = nn.TrainConfig(monitor=monitor), History()
        for entry in (report(1, 1.0, 0.5), report(2, 2.0, 0.1)):
            history = history.add(entry, config)
        assert history.best_epoch == best


def test_without_validation_the_last_epoch_is_the_best(parts: Parts) -> None:
    result = nn.train(SMALL, parts[0])
    assert result.best is result.history[-1]
    assert result.best.valid_loss is None


def test_train_loss_is_the_mean_over_rows() -> None:
    """With a rate of nearly 0 the weights stay the same: the mean is the loss of the rows."""
    rng = np.random.default_rng(0)
    data = nn.Dataset.from_arrays(rng.normal(size=(37, 3)), rng.integers(0, 2, 37))
    config = nn.TrainConfig(hidden=(4,), lr=1e-12, epochs=1, batch_size=10, optimizer="sgd")
    result = nn.train(config, data)
    assert result.history[0].train_loss == pytest.approx(
        nn.evaluate(result.model, data).loss, rel=1e-5
    )


def test_divergence_says_where_and_what_to_lower(parts: Parts) -> None:
    config = nn.TrainConfig(optimizer="sgd", lr=1e6, scale="none", epochs=50, batch_size=16)
    with pytest.raises(TrainingDiverged) as caught:
        nn.train(config, *parts[:2])
    error = caught.value
    assert error.lr == 1e6
    assert error.epoch >= 1
    assert error.step >= 1
    assert f"epoch {error.epoch}, step {error.step} (learning rate 1e+06)" in str(error)
    assert "1e+05" in error.fix


def test_scaling_uses_training_rows_only(parts: Parts) -> None:
    train, valid, _ = parts
    model = nn.train(SMALL, train, valid).model
    assert model.scaler is not None
    np.testing.assert_allclose(model.scaler.shift, train.x.mean(axis=0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(1 / model.scaler.factor, train.x.std(axis=0), rtol=1e-4)
    scaled = model.scaler.apply(train.x)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-5)
    unit = nn.train(dataclasses.replace(SMALL, scale="unit"), train).model.scaler
    assert unit is not None
    low, high = unit.apply(train.x).min(axis=0), unit.apply(train.x).max(axis=0)
    np.testing.assert_allclose((low, high), (np.zeros(5), np.ones(5)), atol=1e-6)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6 + 0.1])
def test_a_constant_column_is_shifted_and_not_stretched(value: float) -> None:
    x = np.random.default_rng(0).normal(size=(50, 2))
    x[:, 1] = value
    data = nn.Dataset.from_arrays(x, np.arange(50) % 2)
    for scale in ("standard", "unit"):
        scaler = nn.train(dataclasses.replace(SMALL, scale=scale), data).model.scaler
        assert scaler is not None
        assert scaler.factor[1] == 1
        assert np.abs(scaler.apply(data.x)[:, 1]).max() < 0.2


def test_a_column_far_from_0_is_stretched_too() -> None:
    """Half an hour of seconds since 1970 deviates by 3e-7 of the mean."""
    x = np.stack([1.7e9 + np.arange(0, 2000, 10.0), np.arange(200.0)], axis=1)
    data = nn.Dataset.from_arrays(x, np.arange(200) % 2)
    scaler = nn.train(dataclasses.replace(SMALL, epochs=1), data).model.scaler
    assert scaler is not None
    np.testing.assert_allclose(scaler.apply(data.x).std(axis=0), 1, rtol=0.01)
    np.testing.assert_allclose(scaler.apply(data.x).mean(axis=0), 0, atol=0.15)


def test_settings_that_do_not_fit_the_data(parts: Parts) -> None:
    train, valid, _ = parts
    with pytest.raises(ConfigError, match="patience = 3 "):
        nn.train(nn.TrainConfig(patience=3), train)
    with pytest.raises(ConfigError, match=r"loss = 'logistic' .* 3 classes"):
        nn.train(nn.TrainConfig(loss="logistic"), train)
    numbers = nn.Dataset.from_arrays(train.x, np.linspace(0, 1, len(train)))
    with pytest.raises(ConfigError, match=r"loss = 'softmax' .*\n.*squared"):
        nn.train(nn.TrainConfig(loss="softmax"), numbers)
    narrow = nn.Dataset.from_arrays(valid.x[:, :2], valid.y)
    with pytest.raises(DataError, match=r"^data .* columns"):
        nn.train(SMALL, train, narrow)
    model = nn.train(dataclasses.replace(SMALL, epochs=1), train).model
    with pytest.raises(DataError, match=r"^data: 2 columns.* 5\n"):
        nn.evaluate(model, narrow)
    with pytest.raises(DataError, match=r"^data .*real targets.* classes\n"):
        nn.evaluate(model, numbers)
    with pytest.raises(DataError, match=r": 2 columns.* 5\n"):
        model.predict(narrow.x)
    with pytest.raises(DataError, match=r": 1 .*float32.* nan .*row 0, column 2\b"):
        model.predict(np.array([[1, 2, np.nan, 4, 5]]))


def test_columns_in_another_order_are_refused(parts: Parts) -> None:
    train, valid, test = (
        dataclasses.replace(part, columns=("a", "b", "c", "d", "e")) for part in parts
    )
    model = nn.train(SMALL, train, valid).model
    nn.evaluate(model, dataclasses.replace(test, columns=("c0", "c1", "c2", "c3", "c4")))
    turned = dataclasses.replace(test, x=test.x[:, ::-1].copy(), columns=("e", "d", "c", "b", "a"))
    with pytest.raises(DataError, match=r"load_data\(..., columns=model\.columns\)"):
        nn.evaluate(model, turned)
    with pytest.raises(DataError, match=r"^blobs, test part .*train part .*columns"):
        nn.train(SMALL, train, turned)
    with pytest.raises(DataError, match=r"concat: .*train part .*test part .*columns"):
        nn.concat(train, turned)


def test_labels_in_another_order_are_matched_by_value() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    y = np.where(x[:, 0] > 0, "b", "a")
    model = nn.train(dataclasses.replace(SMALL, epochs=30), nn.Dataset.from_arrays(x, y)).model
    some = nn.Dataset.from_arrays(x[y == "b"], y[y == "b"], classes=("b", "a"))
    assert nn.evaluate(model, some).error < 0.1
    odd = nn.Dataset.from_arrays(x, np.where(x[:, 0] > 0, "b", "c"))
    with pytest.raises(DataError, match=r"label 'c' .*row \d"):
        nn.evaluate(model, odd)
