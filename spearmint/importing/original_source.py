"""Results of the original Spearmint in ``jobs/*.pb``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from google.protobuf.message import DecodeError

from spearmint.errors import InputError
from spearmint.importing.original_job_pb2 import OriginalJob
from spearmint.importing.rows import Row, Table

_COMPLETE = "complete"


def original_files(folder: Path) -> list[Path]:
    """Return the job files in an experiment's directory or its ``jobs``, sorted by number."""
    inside = folder / "jobs"
    files = (inside if inside.is_dir() else folder).glob("*.pb")
    return sorted(path for path in files if path.stem.isdecimal() and path.is_file())


def read_original(files: Sequence[Path]) -> Table:
    """Return the jobs in ``files`` as rows; a job that is not complete has no value.

    Raises:
        InputError: Some files are not job files of the original; the message names all of them.
    """
    rows, invalid = [], []
    for path in files:
        job = OriginalJob()
        try:
            job.ParseFromString(path.read_bytes())
        except (DecodeError, OSError) as error:
            invalid.append(f"  {path}: {error}")
            continue
        rows.append(_row(path, job))
    if invalid:
        raise InputError(
            "not job files of the original Spearmint:\n" + "\n".join(invalid),
            "Move them to another directory; nothing was imported.",
        )
    jobs = files[0].parent.resolve()
    return Table(source=f"{jobs.parent.name}/{jobs.name}", rows=rows)


def _row(path: Path, job: OriginalJob) -> Row:
    cells: dict[str, object] = {}
    for param in job.param:
        values = (*param.dbl_val, *param.int_val, *param.str_val)
        alone = len(values) == 1
        cells |= {param.name if alone else f"{param.name}[{i}]": v for i, v in enumerate(values)}
    is_complete = job.status == _COMPLETE and job.HasField("value")
    return Row(
        place=path.name,
        cells=cells,
        value=job.value if is_complete else None,
        seconds=job.duration if job.HasField("duration") else None,
    )
