"""The trainer on the GPU: results like numpy, and checkpoints that both can resume."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pycuda_nn as nn
from pycuda_nn.data.scaling import Scaler, scaled
from pycuda_nn.protocols import Split
from pycuda_nn.rng import EpochOrder
from pycuda_nn.training.fit_to_data import network_for, recipe

pytestmark = pytest.mark.gpu

DIGITS = nn.TrainConfig(
    hidden=(128, 64), optimizer="sgd", lr=0.05, epochs=12, batch_size=32, scale="unit", seed=3
)


@pytest.fixture(scope="module")
def digits() -> nn.Splits:
    return nn.load_splits("digits")


def test_100_steps_lose_what_numpy_loses(digits: nn.Splits) -> None:
    train = digits.train
    network = network_for(DIGITS, train)
    rows = Split(x=scaled(train.x, Scaler.fit(train.x, "unit")), y=train.y)
    losses = []
    for backend in (nn.CudaBackend(), nn.backends.pick("numpy")):
        session = backend.open(network, recipe(DIGITS), {"train": rows}, network.initial_params(3))
        steps = -(-len(rows.x) // DIGITS.batch_size)
        epochs = [
            session.run_epoch(EpochOrder(n=len(rows.x), seed=3, epoch=e), np.full(steps, 0.05))
            for e in range(-(-100 // steps))
        ]
        losses.append(np.concatenate(epochs)[:100])
        session.close()
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)


@pytest.mark.parametrize("precision", ["float32", "tf32", "fp16", "bf16"])
def test_digits_are_learnt_as_well_as_by_numpy(digits: nn.Splits, precision: str) -> None:
    backend = nn.CudaBackend(nn.CudaOptions(precision=precision))
    mine = nn.train(DIGITS, digits.train, digits.valid, backend=backend)
    other = nn.train(DIGITS, digits.train, digits.valid, backend="numpy")
    assert mine.best.valid_error == pytest.approx(other.best.valid_error, abs=0.006)  # 2 of 360
    assert nn.evaluate(mine.model, digits.test).error < 0.06


def test_the_persistent_kernel_in_float32_loses_what_numpy_loses(
    digits: nn.Splits, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="pycuda_nn")
    settings = {**DIGITS.as_dict(), "hidden": (256, 256), "dropout": 0.2, "epochs": 3}
    config = nn.TrainConfig.from_mapping(settings)
    backend = nn.CudaBackend(nn.CudaOptions(precision="float32", deterministic=True))
    mine = nn.train(config, digits.train, digits.valid, backend=backend)
    other = nn.train(config, digits.train, digits.valid, backend="numpy")
    path = r"training path: persistent kernel \(3 dense layers, .*, float32, .*"
    assert any(re.fullmatch(path, line) for line in caplog.messages)
    for one, two in zip(mine.history, other.history, strict=True):
        assert one.train_loss == pytest.approx(two.train_loss, rel=1e-4)
        assert one.valid_error == pytest.approx(two.valid_error, abs=0.003)  # 1 of 360


@pytest.mark.parametrize(("first", "second"), [("cuda", "numpy"), ("numpy", "cuda")])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_checkpoint_moves_between_backends(
    digits: nn.Splits, tmp_path: Path, first: str, second: str, optimizer: str
) -> None:
    changes = {"optimizer": optimizer, "lr": 0.002 if optimizer == "adam" else 0.05, "dropout": 0.1}
    settings = {**DIGITS.as_dict(), **changes}
    half = nn.TrainConfig.from_mapping({**settings, "epochs": 3})
    whole = nn.TrainConfig.from_mapping({**settings, "epochs": 6})
    path = tmp_path / "net.npz"
    nn.train(half, digits.train, digits.valid, checkpoint=path, backend=first)
    moved = nn.train(
        whole, digits.train, digits.valid, checkpoint=path, resume=True, backend=second
    )
    straight = nn.train(whole, digits.train, digits.valid, backend="numpy")
    for mine, other in zip(moved.history, straight.history, strict=True):
        assert mine.train_loss == pytest.approx(other.train_loss, rel=1e-3)


@pytest.mark.parametrize("precision", ["bf16", "float32"])
def test_an_epoch_that_begins_early_is_the_same_bits(digits: nn.Splits, precision: str) -> None:
    """With patience an epoch begins after the results of the last, as the best weights are kept."""
    backend = nn.CudaBackend(nn.CudaOptions(precision=precision, deterministic=True))
    settings = {**DIGITS.as_dict(), "epochs": 12, "dropout": 0.1}
    early, late = (
        nn.train(
            nn.TrainConfig.from_mapping({**settings, "patience": patience}),
            digits.train,
            digits.valid,
            backend=backend,
        ).history
        for patience in (None, 12)
    )
    for mine, other in zip(early, late, strict=True):
        assert (mine.train_loss, mine.valid_loss) == (other.train_loss, other.valid_loss)


def test_a_resumed_training_is_the_same_bits(digits: nn.Splits, tmp_path: Path) -> None:
    backend = nn.CudaBackend(nn.CudaOptions(precision="bf16", deterministic=True))
    path = tmp_path / "net.npz"
    half = nn.TrainConfig.from_mapping({**DIGITS.as_dict(), "epochs": 3})
    nn.train(half, digits.train, checkpoint=path, backend=backend)
    resumed = nn.train(DIGITS, digits.train, checkpoint=path, resume=True, backend=backend)
    straight = nn.train(DIGITS, digits.train, backend=backend)
    np.testing.assert_array_equal(resumed.model.params, straight.model.params)


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        (
            {},
            r"[\w, ]+ \(3 dense layers, softmax of 10 classes, bf16, minibatch 32\): "
            r"(?=.*persistent kernel)(?=.*captured step)(?=.*tiny kernel).* us a step",
        ),
        (
            {"hidden": (160,) * 5},
            r"captured step \(6 dense layers, softmax of 10 classes, bf16, minibatch 32\): "
            r"5 hidden layers are not supported by the persistent kernel",
        ),
    ],
)
def test_the_log_says_which_path_a_training_takes(
    digits: nn.Splits, caplog: pytest.LogCaptureFixture, changes: dict[str, Any], path: str
) -> None:
    caplog.set_level("INFO", logger="pycuda_nn")
    config = nn.TrainConfig.from_mapping({**DIGITS.as_dict(), **changes, "epochs": 1})
    backend = nn.CudaBackend(nn.CudaOptions(precision="bf16"))
    nn.train(config, digits.train, backend=backend)
    assert any(re.fullmatch(f"training path: {path}", line) for line in caplog.messages)


def test_the_command_says_what_it_trains_on(tmp_path: Path) -> None:
    done = _command(tmp_path, "--precision", "bf16", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["backend"] == "cuda"
    assert " bf16" in done.stderr
    assert "GPU memory" in done.stderr


def test_a_gpu_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    done = _command(tmp_path, "--device", "99")
    assert done.returncode == 2
    assert "--device 99" in done.stderr
    assert "CUDA_VISIBLE_DEVICES" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_room_says_what_was_needed(tmp_path: Path) -> None:
    done = _command(tmp_path, "--memory-limit", "3MiB")
    assert done.returncode == 1
    assert re.search(r"GPU memory: [\d.,]+ MiB .*, [\d.,]+ MiB .*--memory-limit", done.stderr)
    assert "batch_size" in done.stderr
    assert "Traceback" not in done.stderr


def _command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "pycuda_nn", "train", "--data", "digits", "--set", "epochs=2"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sys.path))}
    return subprocess.run(
        [*argv, *words], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
