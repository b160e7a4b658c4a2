"""A training that is killed at random times and resumed has the losses of an uninterrupted run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from pycuda_nn.training import checkpoint as files

ROOT = Path(__file__).parents[3]
ENV = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}


def command(data: Path, checkpoint: Path) -> list[str]:
    return [
        sys.executable, "-m", "pycuda_nn", "train", "--data", str(data), "--json",
        "--checkpoint", str(checkpoint), "--resume", "--set", "hidden=48,32", "--set", "epochs=25",
        "--set", "dropout=0.3", "--set", "optimizer=adam", "--set", "batch_size=20",
    ]  # fmt: skip


def finish(data: Path, checkpoint: Path) -> dict[str, object]:
    done = subprocess.run(
        command(data, checkpoint), env=ENV, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def without_times(path: Path) -> list[tuple[object, ...]]:
    return [
        (r.epoch, r.train_loss, r.valid_loss, r.valid_error, r.lr)
        for r in files.load(path).history.reports
    ]


@pytest.mark.slow
def test_killed_at_random_instants_and_resumed(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    data = tmp_path / "some data.npz"
    x = rng.normal(size=(3000, 20))
    np.savez(data, x=x, y=(x[:, 0] * x[:, 1] > 0).astype(int))
    whole, broken = tmp_path / "whole.npz", tmp_path / "broken.npz"
    finish(data, whole)
    kills_with_work_done = 0
    while kills_with_work_done < 3:
        process = subprocess.Popen(
            command(data, broken), env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        assert process.stderr is not None
        # An epoch is printed after it is saved.
        first = next((line for line in process.stderr if line.startswith(b"epoch ")), b"")
        time.sleep(rng.uniform(0, 0.12))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stderr.close()
        done = len(files.load(broken).history.reports)  # the file is complete at any time
        if done == 25:  # on a busy machine the training can end before the kill
            broken.unlink()
        else:
            kills_with_work_done += bool(first)
    finish(data, broken)
    assert without_times(broken) == without_times(whole)
    np.testing.assert_array_equal(
        files.load(broken).state["params"], files.load(whole).state["params"]
    )
    assert sorted(p.name for p in tmp_path.iterdir() if p.suffix == ".part") == []
