from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEAVY = (
    "scipy", "sklearn", "optuna", "click", "rich", "pyarrow", "pycuda", "cuda", "nvmath", "torch",
    "starcluster", "starcluster_plugins", "spearmint", "sge_jobs", "condor_jobs",
)  # fmt: skip


def modules_after(code: str) -> set[str]:
    code = f"{code}\nimport sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


def test_import_costs_numpy_only() -> None:
    loaded = modules_after("import pycuda_nn; assert pycuda_nn.train")
    assert "numpy" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_training_costs_numpy_only() -> None:
    loaded = modules_after(
        "import numpy as np, pycuda_nn as nn\n"
        "d = nn.Dataset.from_arrays(np.eye(8), np.arange(8) % 2)\n"
        "nn.evaluate(nn.train(nn.TrainConfig(epochs=1), d, backend='numpy').model, d)"
    )
    assert loaded.isdisjoint(HEAVY)


def test_the_command_needs_no_data_package_for_help() -> None:
    loaded = modules_after("from pycuda_nn.cli import main; main(['train', '--help'])")
    assert loaded.isdisjoint({"scipy", "sklearn", "pyarrow", "rich", "pycuda"})
