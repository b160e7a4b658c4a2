"""Run a final training: the user's code writes a model, and returns the metrics of its test."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spearmint.layout import PROCESSES, TrialFolder, write_json
from spearmint.trial.environment import MODEL_DIR
from spearmint.trial.languages import Spec, load_module, run_shell, to_arrays
from spearmint.trial.outputs import OBJECTIVES, OUTPUTS, BadResult, to_float


def run_final(spec: Spec, folder: TrialFolder) -> float:
    """Call ``final(job_id, params, model_dir)`` of the user's code; return the test metric.

    The directory is empty at the start. All metrics are stored next to it. A SHELL executable
    finds it in ``$SPEARMINT_MODEL_DIR``. In several processes, rank 0 returns the metrics.

    Raises:
        BadResult: The function is missing, returned no number, or wrote no file.
        BaseException: Any exception of the user's code.
    """
    shutil.rmtree(folder.model, ignore_errors=True)
    folder.model.mkdir(parents=True)
    os.environ[MODEL_DIR] = str(folder.model)
    call = _METRICS.get(spec["language"]) if not spec.get(PROCESSES) else _of_ranks
    if call is None:
        raise BadResult(f"no final training with language: {spec['language']}; use PYTHON or SHELL")
    metrics = call(spec, folder)
    if not any(folder.model.iterdir()):
        raise BadResult(f"final wrote no file to its directory, {folder.model}")
    write_json(folder.metrics, metrics, durable=True)
    return float(metrics["value"])


def call_final(spec: Spec, folder: TrialFolder) -> object:
    """Return what ``final`` of the user's code returns. Raises BadResult if it is missing."""
    module = load_module(Path(spec["directory"]), spec["name"])
    final = getattr(module, "final", None)
    if not callable(final):
        raise BadResult(f"{spec['name']}.py has no function final(job_id, params, model_dir)")
    return final(spec["job_id"], to_arrays(spec["params"]), folder.model)


def _of_python(spec: Spec, folder: TrialFolder) -> dict[str, Any]:
    return read_metrics(call_final(spec, folder))


def _of_ranks(spec: Spec, folder: TrialFolder) -> dict[str, Any]:
    from spearmint.trial.ranks.launch import run_ranks  # most trainings have one process

    return dict(run_ranks(spec, folder)["metrics"])


def _of_shell(spec: Spec, folder: TrialFolder) -> dict[str, Any]:
    return read_metrics(run_shell({**spec, OUTPUTS: (), OBJECTIVES: ()}, folder))


_METRICS = {"PYTHON": _of_python, "SHELL": _of_shell}


def read_metrics(returned: object) -> dict[str, Any]:
    """Return what ``final`` returned as metrics with the number ``value``.

    With ``n``, the number of test examples, and a value from 0 to 1, the standard error of a share
    is added: the square root of ``value (1 - value) / n``.

    Raises:
        BadResult: There is no value, or something is not JSON.
    """
    metrics: dict[str, Any] = {"value": returned}
    if isinstance(returned, Mapping):
        metrics = dict(returned)
    if "value" not in metrics:
        raise BadResult('final returned a dict without "value", the test metric')
    for name, number in metrics.items():
        if name in ("value", "standard_error", "n") or hasattr(number, "item"):
            metrics[name] = to_float(number, "final returned", name)
    value, error = metrics["value"], metrics.get("standard_error")
    if math.isnan(value) or (error is not None and not error >= 0):
        raise BadResult(f"final returned {value} with standard error {error}")
    if error is None and metrics.get("n", 0) > 0 and 0 <= value <= 1:
        metrics["standard_error"] = math.sqrt(value * (1 - value) / metrics["n"])
    try:
        json.dumps(metrics, allow_nan=False)
    except (TypeError, ValueError) as problem:
        raise BadResult(f"final returned metrics that JSON cannot hold: {problem}") from None
    return metrics
