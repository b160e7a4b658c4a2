"""A checkpoint of commit 552f7dd, in which networks were not yet tuples of layers."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

import pycuda_nn as nn
from pycuda_nn.network import Network
from pycuda_nn.training import checkpoint as files

DATA = Path(__file__).parent / "data"
OLD = DATA / "checkpoint_552f7dd.npz"
CONFIG = nn.TrainConfig(
    hidden=(6, 5), activation="tanh", dropout=0.25, l2=1e-3, optimizer="adam", lr=0.02, epochs=6,
    batch_size=16, patience=4, seed=7,
)  # fmt: skip


def expected() -> dict[str, np.ndarray]:
    with np.load(DATA / "expected_552f7dd.npz") as file:
        return dict(file)


def test_it_predicts_what_it_predicted() -> None:
    model, want = nn.load_model(OLD), expected()
    sizes = (4, 6, 5, 3)
    assert model.network == Network.from_sizes(sizes, activation="tanh", dropout=0.25)
    np.testing.assert_allclose(model.predict_proba(want["x_test"]), want["proba"], rtol=1e-6)


def test_it_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    path, want = tmp_path / "old.npz", expected()
    shutil.copy(OLD, path)
    saved = files.load(OLD)
    train, valid = (
        nn.Dataset.from_arrays(
            want[f"x_{name}"], np.array(["a", "b", "c"])[want[f"y_{name}"]],
            columns=saved.columns, name=name,
        )
        for name in ("train", "valid")
    )  # fmt: skip
    result = nn.train(CONFIG, train, valid, checkpoint=path, resume=True, backend="numpy")
    got = [(r.train_loss, r.valid_loss, r.valid_error) for r in result.history]
    np.testing.assert_allclose(got, want["history"], rtol=1e-6)
    np.testing.assert_allclose(result.model.params, want["params"], rtol=1e-5, atol=1e-7)


def test_what_is_written_now_has_the_same_form(tmp_path: Path) -> None:
    """Older versions can read new checkpoints: same arrays, and same keys of the network."""
    files.save(tmp_path / "new.npz", files.load(OLD))
    with np.load(OLD) as old, np.load(tmp_path / "new.npz") as new:
        assert {name: old[name].tobytes() for name in old} == {
            name: new[name].tobytes() for name in new
        }
