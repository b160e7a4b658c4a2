"""Write predictions as CSV or ``.npy``; a file is written completely or not at all."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from pycuda_nn.errors import PycudaNNError
from pycuda_nn.model import Model
from pycuda_nn.training.atomic_write import replace_file

Array = npt.NDArray[Any]


def write_predictions(
    model: Model, x: Array, out: Path | None, stdout: TextIO, *, probabilities: bool
) -> None:
    """Predict the rows of ``x`` and write them to ``out``, or as CSV to ``stdout``.

    The suffix of ``out`` selects the format. A ``.npy`` file contains the labels or values; with
    ``probabilities``, only the probabilities.

    Raises:
        PycudaNNError: The file cannot be written.
    """
    if out is None:
        stdout.write(_as_csv(model, x, probabilities=probabilities))
        stdout.flush()
        return
    if out.suffix == ".csv":
        content = _as_csv(model, x, probabilities=probabilities).encode()
    else:
        packed = io.BytesIO()
        np.save(packed, model.predict_proba(x) if probabilities else model.predict(x))
        content = packed.getvalue()
    try:
        replace_file(out, content)
    except OSError as error:
        raise PycudaNNError(
            f"cannot write {out}: {error.strerror}", "Use a directory that exists and is writable."
        ) from error


def _as_csv(model: Model, x: Array, *, probabilities: bool) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    values = model.predict(x)
    columns = values.reshape(len(values), -1)
    names = [f"prediction_{i}" for i in range(columns.shape[1])]
    rows = columns.tolist()
    if columns.shape[1] == 1:
        names = ["prediction"]
    if probabilities and model.classes is not None:
        names += [f"p_{label}" for label in model.classes]
        shares = model.predict_proba(x).tolist()
        rows = [[*row, *share] for row, share in zip(rows, shares, strict=True)]
    writer.writerow(names)
    writer.writerows(rows)
    return text.getvalue()
