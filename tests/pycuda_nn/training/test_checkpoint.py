from __future__ import annotations

import dataclasses
import errno
import json
import re
from pathlib import Path

import numpy as np
import pytest

import pycuda_nn as nn
from pycuda_nn.errors import CheckpointError
from pycuda_nn.training import checkpoint as files

Parts = tuple[nn.Dataset, nn.Dataset, nn.Dataset]

CONFIGS = {
    "sgd": nn.TrainConfig(optimizer="sgd", lr=0.05, schedule="cosine", warmup_epochs=2),
    "nesterov": nn.TrainConfig(optimizer="sgd", lr=0.05, nesterov=True, dropout=0.4, l2=1e-3),
    "adam": nn.TrainConfig(optimizer="adam", lr=0.01, dropout=0.4, schedule="step", step_epochs=3),
    "patience": nn.TrainConfig(optimizer="adam", lr=0.3, dropout=0.2, patience=4),
}


class Killed(Exception):
    pass


def small(name: str) -> nn.TrainConfig:
    return dataclasses.replace(CONFIGS[name], hidden=(12, 8), epochs=12, batch_size=16)


def facts(result: nn.TrainResult) -> list[dict[str, object]]:
    return [{**dataclasses.asdict(report), "seconds": None} for report in result.history]


@pytest.mark.parametrize("name", CONFIGS)
def test_resume_is_exact_after_a_stop_at_any_epoch(name: str, parts: Parts, tmp_path: Path) -> None:
    config, (train, valid, _) = small(name), parts
    whole = nn.train(config, train, valid)
    for stop in (1, 2, 5, len(whole.history) - 1):
        path = tmp_path / f"a b {stop}.npz"

        def kill(report: nn.EpochReport, stop: int = stop) -> None:
            if report.epoch == stop:
                raise Killed

        with pytest.raises(Killed):
            nn.train(config, train, valid, checkpoint=path, on_epoch=kill)
        resumed = nn.train(config, train, valid, checkpoint=path, resume=True)
        assert facts(resumed) == facts(whole)
        np.testing.assert_array_equal(resumed.model.params, whole.model.params)
        assert resumed.best.epoch == whole.best.epoch


def test_a_finished_training_is_not_trained_again(parts: Parts, tmp_path: Path) -> None:
    config, path = small("adam"), tmp_path / "c.npz"
    whole = nn.train(config, *parts[:2], checkpoint=path)
    seen: list[nn.EpochReport] = []
    again = nn.train(config, *parts[:2], checkpoint=path, resume=True, on_epoch=seen.append)
    assert seen == []
    assert again.history == whole.history


def test_more_epochs_go_on_where_the_rates_allow_it(parts: Parts, tmp_path: Path) -> None:
    config, path = small("adam"), tmp_path / "c.npz"
    nn.train(dataclasses.replace(config, epochs=5), *parts[:2], checkpoint=path)
    longer = nn.train(config, *parts[:2], checkpoint=path, resume=True)
    assert facts(longer) == facts(nn.train(config, *parts[:2]))
    cosine = small("sgd")
    nn.train(dataclasses.replace(cosine, epochs=5), *parts[:2], checkpoint=path)
    with pytest.raises(CheckpointError, match=r"  - epochs: 5 .* 12 "):
        nn.train(cosine, *parts[:2], checkpoint=path, resume=True)


def test_resume_without_a_file_starts(parts: Parts, tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    result = nn.train(small("sgd"), *parts[:2], checkpoint=path, resume=True)
    assert len(result.history) == 12
    assert path.exists()


def test_another_training_is_refused_with_the_difference(parts: Parts, tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    nn.train(small("sgd"), *parts[:2], checkpoint=path)
    other = dataclasses.replace(small("sgd"), lr=0.1, hidden=(3,))
    with pytest.raises(CheckpointError) as caught:
        nn.train(other, *parts[:2], checkpoint=path, resume=True)
    assert re.search(r"  - lr: 0\.05 .* 0\.1 ", str(caught.value))
    assert re.search(r"  - hidden: \[12, 8\] .* \[3\] ", str(caught.value))
    with pytest.raises(CheckpointError, match=r"  - data: .*\btraining rows"):
        nn.train(small("sgd"), parts[1], parts[2], checkpoint=path, resume=True)


def test_other_validation_rows_are_refused(parts: Parts, tmp_path: Path) -> None:
    path, config = tmp_path / "c.npz", dataclasses.replace(small("patience"), patience=None)
    nn.train(dataclasses.replace(config, epochs=3), *parts[:2], checkpoint=path)
    for other in (parts[2], None):
        with pytest.raises(CheckpointError, match=r"  - data: .*\bvalidation rows"):
            nn.train(config, parts[0], other, checkpoint=path, resume=True)
    with np.load(path) as file:
        arrays = dict(file)
    meta = json.loads(arrays.pop("meta").tobytes())
    del meta["valid_fingerprint"]  # older versions did not write it
    np.savez(path, meta=np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8), **arrays)
    assert len(nn.train(config, *parts[:2], checkpoint=path, resume=True).history) == 12


def test_model_of_a_checkpoint_is_the_trained_one(parts: Parts, tmp_path: Path) -> None:
    for name in ("adam", "patience"):
        path = tmp_path / f"{name}.npz"
        result = nn.train(small(name), *parts[:2], checkpoint=path)
        model = nn.load_model(path)
        np.testing.assert_array_equal(model.params, result.model.params)
        np.testing.assert_array_equal(
            model.predict_proba(parts[2].x), result.model.predict_proba(parts[2].x)
        )


def test_patience_keeps_the_best_and_the_last_weights(parts: Parts, tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    result = nn.train(small("patience"), *parts[:2], checkpoint=path, backend="numpy")
    assert result.stopped_early
    saved = files.load(path)
    assert saved.best is not None
    assert not np.array_equal(saved.best, saved.state["params"])
    metrics = nn.evaluate(result.model, parts[1])
    assert metrics.loss == result.best.valid_loss


def test_a_failed_write_leaves_the_old_file(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.npz"
    nn.train(small("sgd"), *parts[:2], checkpoint=path)
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pycuda_nn.training.atomic_write.os.fsync", full)
    with pytest.raises(CheckpointError, match="No space left on device"):
        nn.train(small("adam"), *parts[:2], checkpoint=path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_named(parts: Parts, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"c\.npz: No such file"):
        nn.train(small("sgd"), *parts[:2], checkpoint=tmp_path / "none" / "c.npz")


def test_damaged_files_are_named(parts: Parts, tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    with pytest.raises(CheckpointError, match=r"pycuda-nn train .*--checkpoint "):
        nn.load_model(path)
    nn.train(small("sgd"), *parts[:2], checkpoint=path)
    whole = path.read_bytes()
    for damage in (b"", b"hello", whole[: len(whole) // 2], whole[:-10]):
        path.write_bytes(damage)
        with pytest.raises(CheckpointError, match=r"c\.npz: ") as caught:
            nn.load_model(path)
        assert isinstance(caught.value.__cause__, ValueError)
    np.savez(path, x=np.ones(3))
    with pytest.raises(CheckpointError, match=r"c\.npz .*arrays x\n"):
        nn.load_model(path)
    meta = np.frombuffer(json.dumps({"format": 99}).encode(), dtype=np.uint8)
    np.savez(path, meta=meta)
    with pytest.raises(CheckpointError, match=r"format 99\b.*format 1\b"):
        nn.load_model(path)


@pytest.mark.parametrize(
    ("text", "part"), [("foo(y)", "'foo'"), (5, "cannot read"), ("y * __import__('os')", "unknown")]
)
def test_a_loss_that_is_not_a_formula_is_an_error_of_the_file(
    text: object, part: str, parts: Parts, tmp_path: Path
) -> None:
    path = tmp_path / "own.npz"
    nn.train(nn.TrainConfig(loss="-y * logp", epochs=1), parts[0], checkpoint=path)
    arrays = dict(np.load(path))
    meta = json.loads(arrays["meta"].tobytes())
    meta["network"]["loss"]["text"] = text
    arrays["meta"] = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
    np.savez(path, **arrays)
    with pytest.raises(CheckpointError, match=part):
        nn.load_model(path)


@pytest.mark.parametrize("name", ["state.params", "scaler.shift"])
def test_arrays_of_another_shape_are_an_error_of_the_file(
    name: str, parts: Parts, tmp_path: Path
) -> None:
    path = tmp_path / "cut.npz"
    nn.train(nn.TrainConfig(epochs=1), parts[0], checkpoint=path)
    arrays = dict(np.load(path))
    np.savez(path, **arrays | {name: arrays[name][:1]})
    with pytest.raises(CheckpointError, match=rf"{name} has shape \(1,\)"):
        nn.load_model(path)


def test_the_file_can_be_read_without_this_package(parts: Parts, tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    nn.train(small("adam"), *parts[:2], checkpoint=path, note={"a": 1})
    with np.load(path, allow_pickle=False) as file:
        assert {"state.params", "state.m", "state.v", "state.step", "meta"} <= set(file.files)
        meta = json.loads(file["meta"].tobytes())
    assert meta["config"]["hidden"] == [12, 8]
    assert meta["classes"] == [0, 1, 2]
    assert meta["note"] == {"a": 1}
