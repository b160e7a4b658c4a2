"""Import of job files of the original Spearmint."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spearmint.importing.original_job_pb2 import OriginalJob
from tests.spearmint.conftest import ExperimentDir
from tests.spearmint.importing.conftest import (
    CONFIG,
    Import,
    counts,
    exported,
    optuna_study,
    search,
)


def write_job(folder: Path, number: int, **fields: object) -> Path:
    """Write a job file as the original does."""
    job = OriginalJob(id=number, expt_dir=str(folder), name="trial", language="PYTHON")
    for name, value in fields.items():
        setattr(job, name, value)
    job.param.add(name="X", dbl_val=[0.1 * number, 0.5])
    job.param.add(name="n", int_val=[number])
    job.param.add(name="act", str_val=["tanh"])
    (folder / "jobs").mkdir(parents=True, exist_ok=True)
    path = folder / "jobs" / f"{number:08d}.pb"
    path.write_bytes(job.SerializeToString())
    return path


@pytest.fixture
def original(tmp_path: Path) -> Path:
    folder = tmp_path / "braninpy"
    write_job(folder, 1, status="complete", value=3.5, duration=1.25)
    write_job(folder, 2, status="broken", duration=0.1)
    write_job(folder, 3, status="running", value=1.0)
    write_job(folder, 10, status="complete", value=-1.0)
    (folder / "config.pb").write_text(CONFIG)
    return folder


def test_jobs_of_the_original(
    refused: Import, imported: Import, experiment: ExperimentDir, original: Path
) -> None:
    error = refused(experiment, original)
    assert "00000010.pb, n: 10 " in error
    assert re.search(r"\b1 \w+ 9\b", error)
    write_job(original, 4, status="complete", value=-2.0)
    (original / "jobs" / "00000010.pb").unlink()
    for source in (original, original / "jobs"):
        output = imported(experiment, source)
    assert counts(output) == ["0 trials", "2 trials", "2 rows"]
    first, second = exported(experiment)
    assert first["params"] == {"X": [0.1, 0.5], "n": [1], "act": ["tanh"]}
    assert (first["value"], first["seconds"]) == (3.5, 1.25)
    assert second["value"] == -2.0
    assert optuna_study(experiment).trials[1].user_attrs == {
        "imported": "braninpy/jobs, 00000004.pb"
    }


def test_the_wire_format_is_the_originals(
    imported: Import, experiment: ExperimentDir, tmp_path: Path
) -> None:
    """Field numbers and types are written out here, so that a wrong schema fails."""
    x = b"\x0a\x01X" + b"\x21\x00\x00\x00\x00\x00\x00\xe0\x3f" * 2  # name = 1, dbl_val = 4
    n = b"\x0a\x01n" + b"\x10\x07"  # int_val = 2, varint
    act = b"\x0a\x03act" + b"\x1a\x04relu"  # str_val = 3
    raw = b"\x08\x01" + b"\x12\x02/e" + b"\x1a\x01b" + b"\x20\x02"  # id, expt_dir, name, language
    raw += b"\x2a\x08complete"  # status = 5
    raw += b"".join(b"\x32" + bytes([len(param)]) + param for param in (x, n, act))
    raw += b"\x51\x00\x00\x00\x00\x00\x00\xf8\x3f" + b"\x59\x00\x00\x00\x00\x00\x00\x00\x40"
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "00000001.pb").write_bytes(raw)
    imported(experiment, tmp_path)
    [trial] = exported(experiment)
    assert trial["params"] == {"X": [0.5, 0.5], "n": [7], "act": ["relu"]}
    assert (trial["value"], trial["seconds"]) == (1.5, 2.0)


def test_the_original_ran_in_the_same_directory(
    imported: Import, experiment: ExperimentDir
) -> None:
    write_job(experiment.root, 1, status="complete", value=3.5)
    search(experiment, 1.0)
    assert counts(imported(experiment, experiment.root)) == ["1 trials"]


def test_files_that_are_no_jobs_are_all_named(
    refused: Import, experiment: ExperimentDir, original: Path
) -> None:
    (original / "jobs" / "00000010.pb").write_text("language: PYTHON")
    (original / "jobs" / "00000011.pb").write_text("language: PYTHON")
    error = refused(experiment, original)
    assert "00000010.pb" in error
    assert "00000011.pb" in error
