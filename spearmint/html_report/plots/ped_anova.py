"""Import Optuna's PED-ANOVA without its other evaluators."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, cast

import optuna

if TYPE_CHECKING:
    from optuna.importance import PedAnovaImportanceEvaluator

_PACKAGE = "optuna.importance"


def ped_anova() -> type[PedAnovaImportanceEvaluator]:
    """Return ``optuna.importance.PedAnovaImportanceEvaluator``.

    Its package imports all evaluators. One of them imports scikit-learn where that is installed,
    which takes longer than the rest of a report. This imports the module of PED-ANOVA alone, unless
    the package is already imported, or this version of Optuna has another layout.
    """
    found = None
    if _PACKAGE not in sys.modules:
        with contextlib.suppress(ImportError), _bare_package():
            found = importlib.import_module(f"{_PACKAGE}._ped_anova.evaluator")
    found = found or importlib.import_module(_PACKAGE)
    return cast("type[PedAnovaImportanceEvaluator]", found.PedAnovaImportanceEvaluator)


@contextlib.contextmanager
def _bare_package() -> Iterator[None]:
    """Replace the package by one that imports nothing; a later import finds the real one."""
    bare = ModuleType(_PACKAGE)
    bare.__path__ = [str(Path(optuna.__file__).parent / "importance")]
    sys.modules[_PACKAGE] = bare
    try:
        yield
    finally:
        del sys.modules[_PACKAGE]
