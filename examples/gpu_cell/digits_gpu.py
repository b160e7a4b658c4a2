"""One trial: train a network for handwritten digits, on the GPU of the job or with numpy."""

import os
from pathlib import Path

import pycuda_nn as nn
from spearmint import report


def main(job_id, params):
    """Return the validation error. A job that is rerun continues at its last checkpoint."""
    train, valid, _ = nn.split(nn.load_data("digits"), fractions=(0.6, 0.2, 0.2), seed=0)
    units = params["units"][0].item()
    config = nn.TrainConfig(
        hidden=(units, units),
        lr=params["lr"][0],
        dropout=params["dropout"][0],
        epochs=40,
    )
    folder = Path(os.environ["SPEARMINT_TRIAL_DIR"])
    result = nn.train(
        config,
        train,
        valid,
        checkpoint=folder / "network.npz",
        resume=True,
        on_epoch=lambda epoch: report(epoch.epoch, epoch.valid_error),
    )
    return result.best.valid_error
