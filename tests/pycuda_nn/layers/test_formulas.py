"""Activations and losses that are formulas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pycuda_nn as nn
from pycuda_nn.layers import (
    Activation,
    ClassLoss,
    Layer,
    Memory,
    NumberLoss,
    Softmax,
    Squared,
    loss_of,
)
from pycuda_nn.layers.formulas import NAMED
from pycuda_nn.layers.testing import LayerContract

STEP = 1e-6
NUMBERS = [
    "0.5 * (z - y)**2",
    "where(abs(z - y) < 1, 0.5 * (z - y)**2, abs(z - y) - 0.5)",  # Huber
    "max(0.9 * (y - z), -0.1 * (y - z))",  # quantile
    "exp(z) - y * z",  # Poisson
]
CLASSES = [
    "-y * logp",
    "-y * (1 - p)**2 * logp",  # focal
    "-(0.9 * y + 0.1 / classes) * logp",  # label smoothing
    "-y * where(k < 1, 5, 1) * logp",  # class weights
    "(p - y)**2",  # Brier
]


class TestSilu(LayerContract):
    def layer(self) -> Layer:
        return Activation("silu")


class TestOwnActivation(LayerContract):
    def layer(self) -> Layer:
        return Activation("where(x < 0, 0.1 * x, log1p(x) + x * x)")


@pytest.mark.parametrize("text", [*NUMBERS, *CLASSES])
def test_the_gradient_is_the_slope_of_the_loss(text: str) -> None:
    rng = np.random.default_rng(0)
    loss, z = loss_of(text), rng.normal(size=(6, 4))
    y: Any = rng.integers(4, size=6) if loss.of_classes else rng.normal(size=(6, 4))
    got = z.copy()
    loss.gradient(got, y, Memory(np.float64))
    for place in np.ndindex(z.shape):
        ends = []
        for side in (STEP, -STEP):
            moved = z.copy()
            moved[place] += side
            ends.append(loss.gradient(moved, y, Memory(np.float64)))
        assert got[place] == pytest.approx((ends[0] - ends[1]) / (2 * STEP), abs=1e-8)


def test_the_formula_of_a_built_in_loss_is_the_built_in_loss() -> None:
    rng = np.random.default_rng(1)
    z, labels = rng.normal(size=(8, 3)) * 50, rng.integers(3, size=8)
    for own, built_in, y in (
        (ClassLoss("-y * logp"), Softmax(), labels),
        (NumberLoss("0.5 * (z - y)**2"), Squared(), rng.normal(size=(8, 3))),
    ):
        one, other = z.copy(), z.copy()
        mine = own.gradient(one, y, Memory(np.float64))
        assert mine == pytest.approx(built_in.gradient(other, y, Memory(np.float64)))
        np.testing.assert_allclose(one, other, atol=1e-12)
        assert own.wrong(z, y) == built_in.wrong(z, y)


@pytest.mark.parametrize(
    "text", ["-y * log(p)", "y * (1 - p**0.7) / 0.7", "-y * (1 - p)**0 * logp"]
)
def test_a_class_without_probability_has_a_gradient(text: str) -> None:
    z = np.array([[0.0, 200.0, 0.0]] * 2, dtype=np.float32)
    assert np.isfinite(ClassLoss(text).gradient(z, np.array([1, 0]), Memory(np.float32)))
    assert np.isfinite(z).all()


@pytest.mark.parametrize("name", NAMED)
def test_every_name_trains(name: str) -> None:
    train, valid, _ = nn.split(nn.load_data("digits"), seed=0)
    result = nn.train(
        nn.TrainConfig(hidden=(32,), activation=name, lr=0.01, epochs=2), train, valid
    )
    assert nn.evaluate(result.model, valid).error < 0.4


def test_a_training_with_formulas_resumes_and_predicts(tmp_path: Path) -> None:
    train, valid, test = nn.split(nn.load_data("digits"), seed=0)
    settings: dict[str, Any] = {
        "hidden": (32, 16), "activation": "x * sigmoid(1.7 * x)", "dropout": 0.1,
        "loss": CLASSES[1],
    }  # fmt: skip
    config = nn.TrainConfig(epochs=4, **settings)
    whole = nn.train(config, train, valid)
    path = tmp_path / "model.npz"
    nn.train(nn.TrainConfig(epochs=2, **settings), train, valid, checkpoint=path)
    rest = nn.train(config, train, valid, checkpoint=path, resume=True)
    np.testing.assert_array_equal(rest.model.params, whole.model.params)
    loaded = nn.load_model(path)
    np.testing.assert_array_equal(loaded.predict(test.x), whole.model.predict(test.x))


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"activation": "silo"}, "'silu'"),
        ({"activation": "1 + 1"}, "slope is 0"),
        ({"activation": "x > 0"}, "slope is 0"),
        ({"loss": "z > y"}, "slope is 0"),
        ({"activation": "z * 2"}, "'z'"),
        ({"loss": "sqared"}, "'squared'"),
        ({"loss": "cross_entropy"}, "Did you mean 'softmax'?"),
        ({"activation": "swish"}, "Did you mean 'silu'?"),
        ({"activation": "ReLU"}, "Did you mean 'relu'?"),
        ({"activation": lambda x: x}, "nn.formula(function)"),
        ({"loss": "y"}, "does not depend on the outputs"),
        ({"loss": "z * logp"}, "z and logp"),
        ({"loss": "x * z"}, "'x'"),
        ({"loss": "(z - y"}, "character"),
        ({"loss": 3}, "must be one of"),
        ({"activation": ["relu"]}, "must be one of"),
    ],
)
def test_a_wrong_formula_is_one_of_the_problems(settings: dict[str, Any], part: str) -> None:
    with pytest.raises(nn.PycudaNNError) as caught:
        nn.TrainConfig(**settings)
    assert part in caught.value.what


def test_a_loss_that_does_not_fit_the_data_is_named() -> None:
    train, _, _ = nn.split(nn.load_data("digits"), seed=0)
    with pytest.raises(nn.PycudaNNError, match="does not fit") as caught:
        nn.train(nn.TrainConfig(loss=NUMBERS[0]), train)
    assert caught.value.fix == "Use softmax, or a formula of logp or p."
    numbers = nn.Dataset.from_arrays(train.x, train.x[:, 3])
    with pytest.raises(nn.PycudaNNError, match="does not fit"):
        nn.train(nn.TrainConfig(loss=CLASSES[0]), numbers)


def test_a_diverged_training_names_the_formula_that_can_be_infinite() -> None:
    train, _, _ = nn.split(nn.load_data("digits"), seed=0)
    with pytest.raises(nn.TrainingDiverged) as caught:
        nn.train(nn.TrainConfig(activation="log(x)", epochs=1), train)
    assert "'log(x)'" in caught.value.fix
    with pytest.raises(nn.TrainingDiverged) as caught:
        nn.train(nn.TrainConfig(activation="gelu", lr=1e20, optimizer="sgd", epochs=1), train)
    assert "gelu" not in caught.value.fix
