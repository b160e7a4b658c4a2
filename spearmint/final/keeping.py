"""Keep the model of a final training: a folder with the model and all that made it."""

from __future__ import annotations

import getpass
import hashlib
import platform
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spearmint._version import __version__
from spearmint.errors import SpearmintError
from spearmint.layout import Layout, TrialFolder, read_json, write_json
from spearmint.model import Experiment
from spearmint.models import ModelStore, Version, complete_folder
from spearmint.trial.attempts import read_attempts
from spearmint.trial.languages import wrappers

_CHUNK = 1 << 20


def keep_model(
    experiment: Experiment,
    layout: Layout,
    store: ModelStore,
    number: int,
    spec: Mapping[str, Any],
) -> Version:
    """Copy the model of a finished job to its version, which appears by rename; return it.

    After a kill, the next call ends it.

    Raises:
        SpearmintError: The metrics of the job are missing, or the disk is full.
    """
    target, folder = store.path(number), layout.final(number)
    if not target.exists():
        metrics = read_json(folder.metrics)
        if metrics is None or not folder.model.is_dir():
            raise SpearmintError(f"the model in {folder.model} is missing", f"Delete {folder.path}")
        facts = {
            "params.json": {name: entry["values"] for name, entry in spec["params"].items()},
            "metrics.json": {**metrics, "maximize": experiment.maximize},
            "provenance.json": _provenance(experiment, folder, spec),
        }
        part = target.with_name(f".{target.name}.part")
        try:
            _write_version(part, folder.model, number, facts)
            complete_folder(part, target)
        except OSError as error:  # a full disk must not stay full because of it
            shutil.rmtree(part, ignore_errors=True)
            raise SpearmintError(
                f"cannot copy the model {folder.model} to {target}: {_reason(error)}",
                f"Fix this, then rerun the command: it copies the model ({_size(folder.model)}) "
                "without training.",
            ) from error
    shutil.rmtree(folder.files, ignore_errors=True)  # the model exists twice
    return store.version(number)


def _write_version(
    part: Path, model: Path, number: int, facts: Mapping[str, Mapping[str, Any]]
) -> None:
    part.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    shutil.copytree(model, part / "files", symlinks=True)
    write_json(part / "model.json", {"version": number, "files": _files(part / "files")})
    for name, fact in facts.items():
        write_json(part / name, fact)


def _reason(error: OSError) -> str:
    """Return the cause; of a failed copy of a folder, that of its first file."""
    if isinstance(error, shutil.Error):
        text = str(error.args[0][0][2])  # "[Errno 28] No space left: 'a' -> 'b'", or without Errno
        return text.partition("] ")[2].partition(": ")[0] or text
    return error.strerror or str(error)


def _size(folder: Path) -> str:
    total = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return f"{total / 2**20:.1f} MiB"


def _files(folder: Path) -> list[dict[str, Any]]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [
        {
            "path": path.relative_to(folder).as_posix(),
            "bytes": path.stat().st_size,
            "sha256": _digest(path),
        }
        for path in paths
    ]


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _provenance(
    experiment: Experiment, folder: TrialFolder, spec: Mapping[str, Any]
) -> dict[str, Any]:
    """Return where the model comes from: search, trial, code, job."""
    sources = [experiment.path]
    sources += wrappers(experiment.language, experiment.directory, experiment.name)
    return {
        "identity": spec["final"]["identity"],
        "study": experiment.study_name,
        "region": experiment.region,
        "trial": spec["job_id"],
        "chosen": spec["final"]["how"],
        "trial_value": spec["final"]["value"],
        "sources": {path.name: _digest(path) for path in sources if path.is_file()},
        "jobs": read_attempts(folder),
        "seconds": (read_json(folder.result) or {}).get("seconds"),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "user": getpass.getuser(),
        "spearmint": __version__,
        "python": platform.python_version(),
    }
