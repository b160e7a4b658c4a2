"""The identifier of the kernels of a step, by which choices are stored."""

from __future__ import annotations

import importlib
import sys
from typing import Any
from unittest.mock import MagicMock, patch

import pytest

import pycuda_nn as nn
from pycuda_nn.cuda.runtime.precision import PRECISIONS
from pycuda_nn.cuda.stack import recognise
from pycuda_nn.network import Network
from pycuda_nn.training.fit_to_data import recipe
from tests.pycuda_nn.cuda.step.recording import DRIVERS


@pytest.mark.parametrize("file", ["cuda/step/update.cuh", "cuda/step/data_grad.cuh"])
def test_a_change_of_any_kernel_changes_it(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with patch.dict(sys.modules, {name: MagicMock() for name in DRIVERS}):
        made: Any = importlib.import_module("pycuda_nn.cuda.step.plan")
    stack: Any = recognise(Network.from_sizes((8, 6, 3)))
    plan = made.TrainingPlan(
        stack=stack, recipe=recipe(nn.TrainConfig()), precision=PRECISIONS["bf16"]
    )
    before, read = plan.code(MagicMock(), 1), made.kernel_source
    assert plan.code(MagicMock(), 1) == before
    monkeypatch.setattr(
        made, "kernel_source", lambda *names: read(*names) + "// changed" * (file in names)
    )
    assert plan.code(MagicMock(), 1) != before
