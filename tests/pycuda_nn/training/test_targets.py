"""Regression: scaled targets, reports in their unit, and the task of a table."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import pycuda_nn as nn
from pycuda_nn.cli.main import main
from pycuda_nn.errors import ConfigError
from pycuda_nn.layers import Dense
from pycuda_nn.layers.squared import Squared
from pycuda_nn.training import checkpoint as files

CONFIG = nn.TrainConfig(hidden=(16,), epochs=30, batch_size=16, lr=0.01, seed=3)


def arrays(targets: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 3))
    y = 1000 + 80 * (x @ rng.normal(size=(3, targets))) + rng.normal(size=(150, targets))
    return x, y.astype(np.float32)


def standard(config: nn.TrainConfig) -> nn.TrainConfig:
    return nn.TrainConfig(**{**config.as_dict(), "scale_targets": "standard"})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    x, y = arrays()
    rows = np.column_stack([x, y]).tolist()
    lines = [",".join(map(repr, row)) for row in rows]
    file = tmp_path / "t.csv"
    file.write_text("\n".join(["a,b,c,price", *lines]))
    return file


@pytest.mark.parametrize("targets", [1, 3])
def test_it_is_the_training_of_scaled_targets_reported_in_their_unit(targets: int) -> None:
    x, y = arrays(targets)
    train, valid, test = nn.split(nn.Dataset.from_arrays(x, y))
    got = nn.train(standard(CONFIG), train, valid, backend="numpy")
    shift = train.y.mean(axis=0, dtype=np.float64)
    deviation = np.sqrt(np.square(train.y - shift).mean())
    parts = [
        nn.Dataset.from_arrays(part.x, (part.y - shift) / deviation) for part in (train, valid)
    ]
    want = nn.train(CONFIG, *parts, backend="numpy")
    np.testing.assert_array_equal(got.model.params, want.model.params)
    for ours, scaled in zip(got.history, want.history, strict=True):
        assert ours.train_loss == pytest.approx(scaled.train_loss * deviation**2)
        assert ours.valid_loss == pytest.approx(scaled.valid_loss * deviation**2)
        assert ours.valid_error == pytest.approx(scaled.valid_error * deviation)
    np.testing.assert_allclose(
        got.model.predict(test.x), want.model.predict(test.x) * deviation + shift, rtol=1e-5
    )
    metrics = nn.evaluate(got.model, test)
    residual = got.model.predict(test.x).astype(np.float64) - test.y
    assert metrics.error == pytest.approx(np.sqrt(np.square(residual).mean()), rel=1e-4)
    assert metrics.loss == pytest.approx(np.square(residual).sum() / 2 / len(test), rel=1e-4)


def test_arrays_are_not_scaled_unless_asked() -> None:
    x, y = arrays()
    data = nn.Dataset.from_arrays(x, y)
    assert nn.train(CONFIG, data, backend="numpy").model.targets is None
    none = nn.TrainConfig(**{**CONFIG.as_dict(), "scale_targets": "none"})
    assert nn.train(none, data, backend="numpy").model.targets is None
    classes = nn.Dataset.from_arrays(x, y[:, 0] > 1000)
    assert nn.train(standard(CONFIG), classes, backend="numpy").model.targets is None


def test_a_table_is_scaled_by_its_training_rows(table: Path) -> None:
    parts = nn.load_splits(table)
    model = nn.train(CONFIG, parts.train, parts.valid, backend="numpy").model
    assert model.targets is not None
    assert model.targets.shift[0] == pytest.approx(parts.train.y.mean(), rel=1e-6)
    assert nn.evaluate(model, parts.test).error < 0.2 * parts.test.y.std()


def test_constant_targets_and_another_loss() -> None:
    x, y = arrays()
    flat = nn.Dataset.from_arrays(x, np.full(len(x), 5.0))
    model = nn.train(standard(CONFIG), flat, backend="numpy").model
    np.testing.assert_allclose(model.predict(x), 5, atol=0.5)

    class Absolute(Squared):
        name = "absolute"

    network = nn.Network((Dense(3, 1),), loss=Absolute())
    with pytest.raises(ConfigError, match=r"scale_targets .* absolute\n"):
        nn.train(standard(CONFIG), nn.Dataset.from_arrays(x, y), network=network, backend="numpy")


def test_a_checkpoint_of_scaled_targets_resumes_bit_for_bit(tmp_path: Path) -> None:
    x, y = arrays()
    train, valid, _ = nn.split(nn.Dataset.from_arrays(x, y))
    path = tmp_path / "net.npz"
    half = nn.TrainConfig(**{**standard(CONFIG).as_dict(), "epochs": 15})
    nn.train(half, train, valid, checkpoint=path, backend="numpy")
    got = nn.train(
        standard(CONFIG), train, valid, checkpoint=path, resume=True, backend="numpy"
    ).model
    want = nn.train(standard(CONFIG), train, valid, backend="numpy").model
    np.testing.assert_array_equal(got.predict(x), want.predict(x))
    np.testing.assert_array_equal(nn.load_model(path).predict(x), want.predict(x))


def test_a_training_that_began_unscaled_continues_unscaled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x, y = arrays()
    np.savez(tmp_path / "rows.npz", x=x, y=y)
    path, train = tmp_path / "net.npz", nn.load_splits(tmp_path / "rows.npz")
    old = nn.TrainConfig(epochs=2)
    nn.train(old, train.train, train.valid, checkpoint=path, backend="numpy")
    assert "scale_targets" not in (path.read_bytes().decode("latin-1"))  # older versions read it
    args = ["train", "--data", str(tmp_path / "rows.npz"), "--checkpoint", str(path), "--resume"]
    assert main([*args, "--set", "epochs=4", "--backend", "numpy"]) == 0, capsys.readouterr().err
    assert files.load(path).targets is None
    want = nn.train(nn.TrainConfig(epochs=4), train.train, train.valid, backend="numpy").model
    np.testing.assert_array_equal(nn.load_model(path).params, want.params)


def test_the_command_speaks_of_rmse_in_the_unit_of_the_target(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net = table.with_name("net.npz")
    args = ["--data", str(table), "--checkpoint", str(net), "--backend", "numpy"]
    assert main(["train", *args]) == 0
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert re.fullmatch(
        r"regression of 'price', mean 1\d\d\d, deviation \d\d\d?\.\d+, from 90 rows", lines[0]
    )
    assert lines[1].startswith(
        "settings for this table: scale_targets = standard, batch_size = 32, l2"
    )
    epochs = [line for line in lines if line.startswith("epoch ")]
    shown = [float(value) for value in re.findall(r"valid RMSE ([\d.]+)", "\n".join(epochs))]
    assert len(shown) == len(epochs)
    assert shown[0] > 50 > 20 > min(shown)
    assert f"validation RMSE {min(shown):g}" in out
    assert main(["evaluate", "--checkpoint", str(net)]) == 0
    said = capsys.readouterr().out
    test = nn.load_splits(table).test
    error = nn.evaluate(nn.load_model(net), test).error
    assert f"RMSE {error:.5g}" in said
    assert f"{test.y.std():.5g}" in said
    assert main(["predict", "--checkpoint", str(net), "--data", str(table)]) == 0
    values = np.array(capsys.readouterr().out.split()[1:], dtype=float)
    assert np.corrcoef(values, arrays()[1][:, 0])[0, 1] > 0.98


@pytest.mark.parametrize(
    ("values", "task"),
    [
        ([str(i % 20) for i in range(200)], "classification, 20 classes"),
        ([str(i % 21) for i in range(200)], "regression of 'l'"),
        ([str(i % 9) for i in range(10)], "regression of 'l'"),
        ([f"{i % 3}.0" for i in range(200)], "classification, 3 classes"),
        ([f"{i % 3}.5" for i in range(200)], "regression of 'l'"),
        (["True", "False"] * 40, "classification, 2 classes"),
        (["1,5", "2,5"] * 40, "regression of 'l'"),
        (["yes", "no"] * 40, "classification, 2 classes"),
    ],
)
def test_the_task_of_a_target(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], values: list[str], task: str
) -> None:
    file, net = tmp_path / "t.csv", tmp_path / "net.npz"
    args = ["--data", str(file), "--set", "epochs=1", "--checkpoint", str(net)]
    file.write_text("a;l\n" + "".join(f"{i};{value}\n" for i, value in enumerate(values)))
    assert main(["train", *args, "--backend", "numpy"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert any(line.startswith(task) for line in lines), lines
    assert main(["predict", "--checkpoint", str(net), "--data", str(file)]) == 0
    predicted = set(capsys.readouterr().out.split()[1:])
    if task.startswith("class"):
        assert predicted <= set(values)  # original labels


def test_many_whole_numbers_say_so_and_can_be_classes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "t.csv"
    file.write_text("a,l\n" + "".join(f"{i},{i % 30}\n" for i in range(300)))
    args = ["train", "--data", str(file), "--set", "epochs=1", "--backend", "numpy", "--json"]
    with caplog.at_level("INFO"):
        assert main(args) == 0
    assert "30 different whole numbers; if they are classes: --task classify" in caplog.text
    assert main([*args, "--task", "classify"]) == 0
    out, err = capsys.readouterr()
    assert "classification, 30 classes" in err
    assert json.loads(out.splitlines()[-1])["last"]["epoch"] == 1


@pytest.mark.parametrize(
    ("rows", "label", "fractions", "given", "want"),
    [
        (150, "x", "0.6,0.2,0.2", [], "batch_size = 32, l2 = 0.01, epochs = 400"),
        (1500, "x", "0.8,0,0.2", [], "batch_size = 32, l2 = 0.008333, epochs = 53"),
        (20_000, "x", "0.6,0,0.4", [], "batch_size = 64, l2 = 0.0008333, epochs = 20"),
        (
            150,
            "1.5",
            "0.6,0.2,0.2",
            [],
            "scale_targets = standard, batch_size = 32, l2 = 0.01, epochs = 400, patience = 20",
        ),
        (
            150,
            "1.5",
            "0.8,0,0.2",
            [],
            "scale_targets = standard, batch_size = 32, l2 = 0.01, epochs = 400",
        ),
        (150, "x", "0.6,0.2,0.2", ["batch_size=8", "l2=0"], "epochs = 167"),
        (150, "x", "0.6,0.2,0.2", ["epochs=2"], None),
        (150, "x", "0.6,0.2,0.2", ["patience=1"], None),
    ],
)
def test_defaults_of_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str],
    rows: int, label: str, fractions: str, given: list[str], want: str | None,
) -> None:  # fmt: skip
    file = tmp_path / "t.csv"
    file.write_text("a,l\n" + "".join(f"{i % 7},{('7.5', label)[i % 2]}\n" for i in range(rows)))
    words = [word for setting in [*given, "hidden=2"] for word in ("--set", setting)]
    args = ["--data", str(file), "--fractions", fractions, "--backend", "numpy"]
    assert main(["train", *args, *words]) == 0
    said = re.findall(r"settings for this table: (.*)", capsys.readouterr().err)
    assert said == ([] if want is None else [want])
