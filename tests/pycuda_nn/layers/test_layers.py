"""Every layer passes the contract of layers and computes its formula."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import numpy as np
import pytest

from pycuda_nn import layers
from pycuda_nn.errors import ConfigError
from pycuda_nn.layers import Activation, Dense, Dropout, Layer, Memory, from_description
from pycuda_nn.layers.testing import LayerContract


class TestDense(LayerContract):
    def layer(self) -> Layer:
        return Dense(5, 3)


class TestRelu(LayerContract):
    def layer(self) -> Layer:
        return Activation("relu")


class TestTanh(LayerContract):
    def layer(self) -> Layer:
        return Activation("tanh")


class TestSigmoid(LayerContract):
    def layer(self) -> Layer:
        return Activation("sigmoid")


class TestDropout(LayerContract):
    def layer(self) -> Layer:
        return Dropout(0.3)


def test_the_contract_finds_a_wrong_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Activation, "backward", lambda self, delta, *more, needed: delta)
    with pytest.raises(AssertionError):
        TestTanh().test_backward_is_the_slope_of_forward()


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("relu", lambda z: np.maximum(z, 0)),
        ("tanh", np.tanh),
        ("sigmoid", lambda z: 1 / (1 + np.exp(-z))),
    ],
)
def test_activations(name: str, formula: object) -> None:
    z = np.linspace(-8, 8, 30).reshape(5, 6)
    got = Activation(name).forward(z, (), Memory(np.float64), None)
    np.testing.assert_allclose(got, formula(z), rtol=1e-9, atol=1e-12)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Dense(0, 3), r"Dense\(fan_in=0, fan_out=3\)"),
        (lambda: Activation("rely"), "'rely'.*'relu'"),
        (lambda: Dropout(1.0), r"Dropout\(probability=1\.0\)"),
    ],
)
def test_wrong_settings_are_refused(make: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()  # type: ignore[operator]


def test_an_unknown_type_says_what_to_do() -> None:
    with pytest.raises(ValueError, match=r"'a\.b:C': import "):
        from_description({"type": "a.b:C"})


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(layers.__path__)])
def test_the_examples_run(name: str) -> None:
    module = importlib.import_module(f"pycuda_nn.layers.{name}")
    assert doctest.testmod(module).failed == 0
