"""Publish a model, so that readers see the old one or the new one, and never a part."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from condor_jobs.chain import BEST, EVALUATION, MODEL, Chain
from condor_jobs.errors import NodeFailed
from spearmint.models import complete_folder, switch_link

_KEPT = 2  # the current version, and the one before, which readers may have open


def publish(chain: Chain, folder: Path) -> Path:
    """Copy the model next to ``chain.target``, and make this a link to it by rename.

    A second call, also after a kill, publishes the same model under the same name.

    Returns:
        The directory with the model, ``best.json`` and ``evaluation.txt``.

    Raises:
        NodeFailed: The model is empty, or the target is not a link.
        OSError: It cannot be written.
    """
    model, target = folder / MODEL, Path(chain.target)
    if not model.is_dir() or not any(model.iterdir()):
        raise NodeFailed(f"{model} is empty: retrain must write to $CONDOR_JOBS_MODEL")
    if target.exists() and not target.is_symlink():
        raise NodeFailed(f"{target} exists and is not a link to a model; move it away")
    target.parent.mkdir(parents=True, exist_ok=True)
    version = target.with_name(f".{target.name}.{_stamp(folder)}")
    if not version.exists():
        _copy(folder, version)
    switch_link(target, version.name)
    _forget_others(target, version)
    return version


def _stamp(folder: Path) -> str:
    """Return a name for the model: when its newest file was written."""
    files = [path.stat().st_mtime_ns for path in (folder / MODEL).rglob("*") if path.is_file()]
    return f"{max([*files, (folder / BEST).stat().st_mtime_ns]):020d}"


def _copy(folder: Path, version: Path) -> None:
    part = version.with_name(f"{version.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    shutil.copytree(folder / MODEL, part, symlinks=True)
    shutil.copy2(folder / BEST, part / "best.json")
    with contextlib.suppress(FileNotFoundError):
        shutil.copy2(folder / EVALUATION, part / "evaluation.txt")
    complete_folder(part, version)


def _forget_others(target: Path, current: Path) -> None:
    found = sorted(target.parent.glob(f".{target.name}.[0-9]*"), reverse=True)
    for path in [path for path in found if path != current][_KEPT - 1 :]:
        shutil.rmtree(path, ignore_errors=True)
