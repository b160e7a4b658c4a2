"""The example that fine-tunes a ResNet: formats of images, frozen stages, checkpoints, ranks."""

from __future__ import annotations

import importlib
import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.docs.tools import ROOT

EXAMPLE = ROOT / "examples/resnet"
PARAMS = {"lr": 0.05, "batch": 16, "trained": 1, "group": 0.5, "mixup": 0.2, "decay": 1e-4}


def test_the_training_is_one_short_file() -> None:
    assert len((EXAMPLE / "resnet.py").read_text().splitlines()) <= 150


@pytest.fixture
def torch() -> Any:
    pytest.importorskip("torchvision", reason="needs torchvision")
    return pytest.importorskip("torch", reason="needs PyTorch")


@pytest.fixture
def folder(tmp_path: Path, torch: object) -> Path:
    """Return a folder with JPEG files of two classes: parts of two photos."""
    from PIL import Image
    from sklearn.datasets import load_sample_images

    for i in range(40):
        photo = Image.fromarray(load_sample_images().images[i % 2])
        path = tmp_path / "photos" / ("china", "flower")[i % 2] / f"{i:03d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        photo.crop((10 * i, 5 * i, 10 * i + 96, 5 * i + 96)).save(path)
    return tmp_path / "photos"


@pytest.fixture
def resnet(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torch: Any) -> ModuleType:
    """Return the example as a module, for small images and one epoch."""
    torch.set_num_threads(1)
    small = {"ARCH": "resnet18", "SIZE": "32", "EPOCHS": "1", "WORKERS": "0", "IMAGES": str(folder)}
    for name, value in {**small, "SPEARMINT_TRIAL_DIR": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.syspath_prepend(str(EXAMPLE))
    for name in ("resnet", "images"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("resnet")


def params(**changed: float) -> dict[str, np.ndarray]:
    return {name: np.array([value]) for name, value in {**PARAMS, **changed}.items()}


def test_each_format_has_the_same_images(resnet: ModuleType, folder: Path, tmp_path: Path) -> None:
    from PIL import Image

    files = sorted(folder.glob("*/*.jpg"))
    numbers = [("china", "flower").index(file.parent.name) for file in files]
    with tarfile.open(tmp_path / "photos.tar", "w") as tar:
        for file, number in zip(files, numbers, strict=True):
            tar.add(file, f"{file.stem}.jpg")
            info = tarfile.TarInfo(f"{file.stem}.cls")
            info.size = 1
            tar.addfile(info, io.BytesIO(str(number).encode()))
    arrays = np.stack([np.asarray(Image.open(file)) for file in files])
    np.savez(tmp_path / "photos.npz", images=arrays, classes=numbers)
    images = sys.modules["images"]
    known = [
        images.Images(images.load(str(place)), 32)
        for place in (folder, tmp_path / "photos.tar", tmp_path / "photos.npz")
    ]
    for of_folder, of_tar, of_array in zip(*known, strict=True):
        assert of_folder[0].shape == (3, 32, 32)
        assert of_folder[1] == of_tar[1] == of_array[1]
        assert (of_folder[0] == of_tar[0]).all()
        assert (of_folder[0] == of_array[0]).all()
    assert {number for _, number in known[0]} == {0, 1}


def test_frozen_stages_stay_as_the_weights_are(
    resnet: ModuleType, tmp_path: Path, torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = resnet.models.get_model("resnet18", num_classes=7).state_dict()
    torch.save(before, tmp_path / "weights.pth")
    monkeypatch.setenv("WEIGHTS", str(tmp_path / "weights.pth"))
    assert 0 <= resnet.main(1, params()) <= 1
    _, _, after, _, _ = torch.load(tmp_path / "checkpoint.pt", weights_only=resnet.SAFE)
    changed = {name.split(".")[0] for name in after if not torch.equal(after[name], before[name])}
    assert changed == {"layer4", "fc"}
    assert after["fc.weight"].shape[0] == 2


def test_weights_of_another_network_are_refused(
    resnet: ModuleType, tmp_path: Path, torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = resnet.models.get_model("resnet18").state_dict()
    torch.save({f"module.{name}": value for name, value in state.items()}, tmp_path / "w.pth")
    monkeypatch.setenv("WEIGHTS", str(tmp_path / "w.pth"))
    with pytest.raises(ValueError, match=r"w\.pth is not a resnet18"):
        resnet.main(1, params())


def test_a_retried_trial_continues(
    resnet: ModuleType, tmp_path: Path, torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = resnet.main(1, params())
    monkeypatch.setattr(resnet, "train_epoch", None)  # nothing is left to train
    assert resnet.main(1, params()) == error


def test_a_search_trains_in_two_processes(resnet: ModuleType, tmp_path: Path) -> None:
    search = tmp_path / "search"
    search.mkdir()
    for name in ("resnet.py", "images.py", "config.pb"):
        (search / name).write_text((EXAMPLE / name).read_text())
    argv = ["-n", "1", "--method=random", "--processes=2", "--max-finished-jobs=1", str(search)]
    done = subprocess.run(
        [sys.executable, "-m", "spearmint", *argv], capture_output=True, text=True, check=False
    )
    assert "Best of 1 complete trial" in done.stdout, done.stdout + done.stderr
    known = subprocess.run(
        [sys.executable, "-m", "spearmint", "best", "--json", str(search)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert 0 <= json.loads(known.stdout)["value"] <= 1
