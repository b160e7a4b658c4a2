"""Networks trained at once on a GPU learn what each of them learns alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pycuda_nn as nn

pytestmark = pytest.mark.gpu


SETTINGS: list[dict[str, Any]] = [
    {},
    {"optimizer": "sgd"},
    {"optimizer": "sgd", "nesterov": True, "activation": "tanh"},
    {"activation": "x * sigmoid(x)", "hidden": (40, 24)},
    {"loss": "-y * logp", "batch_size": 33},
    {"hidden": ()},
    {"hidden": (200, 72), "batch_size": 150, "optimizer": "sgd"},
]


def only(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let trainings take only this path, or the next one that covers them."""
    from pycuda_nn.cuda.many import paths
    from pycuda_nn.cuda.many.plan import ManyPlan
    from pycuda_nn.cuda.stack import NotCovered
    from pycuda_nn.cuda.training.choice import Paths

    if path != "tiny kernel":
        monkeypatch.setattr(Paths, "add_tiny", lambda *_, **__: None)
    if path != "column kernel":
        monkeypatch.setattr(paths, "recognise", lambda *_: NotCovered("not in this test"))
    if path == "captured step":
        monkeypatch.setattr(ManyPlan, "fuses", lambda *_: False)


def parts(classes: int = 3, inputs: int = 20) -> tuple[nn.Dataset, nn.Dataset]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, inputs)).astype(np.float32)
    y = (x @ rng.normal(size=(inputs, classes))).argmax(axis=1)
    train, valid, _ = nn.split(nn.Dataset.from_arrays(x, y, task="classify"), seed=1)
    return train, valid


def backend(precision: str) -> nn.CudaBackend:
    return nn.CudaBackend(nn.CudaOptions(precision=precision, deterministic=True))


def configs(**common: object) -> list[nn.TrainConfig]:
    settings = [
        {"lr": 3e-3, "seed": 1},
        {"lr": 1e-2, "seed": 2, "l2": 1e-3, "dropout": 0.25},
        {"lr": 1e-3, "seed": 3, "momentum": 0.5, "beta1": 0.8, "epochs": 3},
    ]
    base = {"hidden": (40,), "epochs": 4, "batch_size": 32, **common}
    return [nn.TrainConfig(**{**base, **values}) for values in settings]


@pytest.mark.parametrize("precision", ["float32", "tf32", "bf16", "fp16"])
@pytest.mark.parametrize("path", ["tiny kernel", "column kernel", "captured step"])
@pytest.mark.parametrize("common", SETTINGS, ids=str)
def test_each_network_is_that_of_numpy(
    precision: str, common: dict[str, Any], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(path, monkeypatch)
    train, valid = parts()
    wanted = configs(**common)
    found = nn.train_many(wanted, train, valid, backend=backend(precision))
    exact = precision == "float32"
    for config, result in zip(wanted, found, strict=True):
        alone = nn.train(config, train, valid, backend="numpy")
        assert isinstance(result, nn.TrainResult)
        assert len(result.history) == len(alone.history)
        for mine, other in zip(result.history, alone.history, strict=True):
            rtol = 2e-4 if exact else 0.05
            assert mine.train_loss == pytest.approx(other.train_loss, rel=rtol)
            assert mine.valid_loss == pytest.approx(other.valid_loss, rel=rtol)


@pytest.mark.parametrize(
    ("precision", "path", "within"),
    [
        ("float32", "tiny kernel", 1e-4),
        ("float32", "captured step", 1e-4),
        ("fp16", "column kernel", 5e-3),
        ("bf16", "column kernel", 5e-2),
        ("fp16", "fused step", 5e-3),
        ("bf16", "fused step", 5e-2),
        ("bf16", "captured step", 5e-2),
    ],
)
def test_the_last_network_learns_as_much_as_the_first(
    precision: str, path: str, within: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """High rates, no dropout: a network that reads the rows of another one learns nothing."""
    only(path, monkeypatch)
    train, valid = parts()
    more = {"hidden": (256,), "optimizer": "sgd", "lr": 0.05, "batch_size": 64, "epochs": 6}
    wanted = [nn.TrainConfig(**more, seed=seed) for seed in range(5)]
    found = nn.train_many(wanted, train, valid, backend=backend(precision))
    for config, result in zip(wanted, found, strict=True):
        alone = nn.train(config, train, valid, backend="numpy")
        assert isinstance(result, nn.TrainResult)
        want = alone.model.params
        assert np.linalg.norm(result.model.params - want) <= within * np.linalg.norm(want)
        assert result.history[-1].train_loss < 0.5


@pytest.mark.parametrize(("precision", "within"), [("bf16", 0.03), ("fp16", 0.004)])
@pytest.mark.parametrize(
    "common", [*SETTINGS, {"dropout": 0.3}, {"hidden": (300,), "batch_size": 64}], ids=str
)
def test_the_fused_step_is_the_captured_step(
    precision: str, within: float, common: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    train, valid = parts()
    base = {"hidden": (40,), "epochs": 2, "batch_size": 32, **common}
    more = {"dropout": 0.0, "l2": 1e-2, "seed": 3}
    wanted = [nn.TrainConfig(**{**more, **base}), nn.TrainConfig(**{"lr": 3e-3, **base})]
    found = []
    for path in ("fused step", "fused step", "captured step"):
        only(path, monkeypatch)
        found.append(nn.train_many(wanted, train, valid, backend=backend(precision)))
    for config, one, again, other in zip(wanted, *found, strict=True):
        assert isinstance(one, nn.TrainResult)
        np.testing.assert_array_equal(one.model.params, again.model.params)
        first = one.model.network.initial_params(config.seed)
        change, same = one.model.params - first, other.model.params - first
        assert np.linalg.norm(change - same) <= within * np.linalg.norm(same)
        for mine, its in zip(one.history, other.history, strict=True):
            assert mine.train_loss == pytest.approx(its.train_loss, rel=within)


COLUMNS: list[dict[str, Any]] = [
    {},
    {"nesterov": True, "activation": "tanh"},
    {"activation": "sigmoid", "dropout": 0.3, "batch_size": 33},
    {"hidden": (256,), "batch_size": 128, "lr": 0.03},
    {"hidden": (200,), "batch_size": 100, "dropout": 0.3},
]


@pytest.mark.parametrize(("precision", "within"), [("bf16", 0.03), ("fp16", 0.004)])
@pytest.mark.parametrize("common", COLUMNS, ids=str)
@pytest.mark.parametrize("inputs", [20, 784])
def test_the_column_kernel_is_the_captured_step(
    precision: str,
    within: float,
    common: dict[str, Any],
    inputs: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    train, valid = parts(inputs=inputs)
    base = {"hidden": (40,), "epochs": 2, "batch_size": 32, "optimizer": "sgd", **common}
    more = {"l2": 1e-2, "seed": 3, "momentum": 0.5, "epochs": 1}
    wanted = [nn.TrainConfig(**{**base, **more}), *(nn.TrainConfig(**base) for _ in range(9))]
    found = []
    for path in ("column kernel", "column kernel", "captured step"):
        with monkeypatch.context() as patch:
            only(path, patch)
            found.append(nn.train_many(wanted, train, valid, backend=backend(precision)))
        assert f"training path: {path}" in caplog.text
        caplog.clear()
    for config, one, again, other in zip(wanted, *found, strict=True):
        assert isinstance(one, nn.TrainResult)
        np.testing.assert_array_equal(one.model.params, again.model.params)
        first = one.model.network.initial_params(config.seed)
        change, same = one.model.params - first, other.model.params - first
        assert np.linalg.norm(change - same) <= within * np.linalg.norm(same)
        for mine, its in zip(one.history, other.history, strict=True):
            assert mine.train_loss == pytest.approx(its.train_loss, rel=within)


@pytest.mark.parametrize("path", ["tiny kernel", "column kernel", "fused step", "captured step"])
@pytest.mark.parametrize(("precision", "within"), [("float32", 1e-4), ("bf16", 0.05)])
def test_several_shapes_at_once_return_the_best_weights_of_each(
    precision: str, within: float, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(path, monkeypatch)
    train, valid = parts()
    more = {"epochs": 8, "patience": 2, "optimizer": "sgd", "lr": 0.3, "batch_size": 32}
    shapes = ((40,), (24, 8), (40,), (24, 8), (40,))
    wanted = [nn.TrainConfig(hidden=h, seed=seed, **more) for seed, h in enumerate(shapes)]
    found = nn.train_many(wanted, train, valid, backend=backend(precision))
    for config, result in zip(wanted, found, strict=True):
        assert isinstance(result, nn.TrainResult)
        of_model = nn.evaluate(result.model, valid).loss
        assert of_model == pytest.approx(result.best.valid_loss, rel=within)
        alone = nn.train(config, train, valid, backend="numpy")
        assert result.history[0].valid_loss == pytest.approx(
            alone.history[0].valid_loss, rel=max(within, 2e-4)
        )


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_other_losses(loss: str) -> None:
    train, valid = parts(classes=2)
    if loss == "squared":
        rng = np.random.default_rng(0)
        x = rng.normal(size=(400, 7)).astype(np.float32)
        data = nn.Dataset.from_arrays(x, np.tanh(x[:, :2]), name="curve")
        train, valid, _ = nn.split(data, seed=1)
    wanted = configs(loss=loss)
    for config, result in zip(
        wanted, nn.train_many(wanted, train, valid, backend=backend("float32")), strict=True
    ):
        alone = nn.train(config, train, valid, backend="numpy")
        assert isinstance(result, nn.TrainResult)
        assert result.history[-1].valid_loss == pytest.approx(
            alone.history[-1].valid_loss, rel=1e-3
        )


def test_same_bits_each_time_and_after_a_resume(tmp_path: Path) -> None:
    train, valid = parts()
    wanted = configs(hidden=(40,))
    first, second = (nn.train_many(wanted, train, valid, backend=backend("bf16")) for _ in range(2))
    paths = [tmp_path / f"{number}.npz" for number in range(3)]

    def stop(number: int, report: nn.EpochReport) -> None:
        if (number, report.epoch) == (2, 2):
            raise KeyboardInterrupt

    more = {"backend": backend("bf16"), "checkpoints": paths}
    with pytest.raises(KeyboardInterrupt):
        nn.train_many(wanted, train, valid, on_epoch=stop, **more)
    third = nn.train_many(wanted, train, valid, resume=True, **more)
    for one, two, three in zip(first, second, third, strict=True):
        np.testing.assert_array_equal(one.model.params, two.model.params)
        np.testing.assert_array_equal(one.model.params, three.model.params)


def test_one_that_diverges_does_not_touch_the_others() -> None:
    train, valid = parts()
    good = configs(optimizer="sgd")
    wild = nn.TrainConfig(hidden=(40,), optimizer="sgd", lr=1e30, batch_size=32, epochs=4)
    with_wild = nn.train_many([*good, wild], train, valid, backend=backend("float32"))
    tame = nn.TrainConfig(hidden=(40,), optimizer="sgd", lr=1e-3, batch_size=32, epochs=4)
    with_tame = nn.train_many([*good, tame], train, valid, backend=backend("float32"))
    assert isinstance(with_wild[3], nn.TrainingDiverged)
    for one, other in zip(with_wild[:3], with_tame[:3], strict=True):
        np.testing.assert_array_equal(one.model.params, other.model.params)
