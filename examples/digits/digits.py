"""One trial: train a network on the digits and return its validation loss.

The 1,797 images are split with a fixed seed: 60 % train, 20 % validation, 20 % test. Trials never
use the test images; ``final.py`` uses them once, at the end.
"""

import os
from pathlib import Path
from statistics import fmean

import pycuda_nn as nn
from spearmint import report

EPOCHS = 30
SPLIT_SEED = 0
SEEDS = (1, 2)  # with one seed, the loss depends on the seed as much as on the network


def images():
    """Return the three parts of the digits: train, validation, test."""
    return nn.split(nn.load_data("digits"), fractions=(0.6, 0.2, 0.2), seed=SPLIT_SEED)


def network(params, seed):
    """Return the configuration of a network and its training for ``params`` of the search."""
    return nn.TrainConfig(
        hidden=(int(params["units"][0]),) * int(params["depth"][0]),
        activation=params["activation"][0],
        dropout=float(params["dropout"][0]),
        l2=float(params["l2"][0]),
        optimizer="sgd",
        lr=float(params["lr"][0]),
        momentum=float(params["momentum"][0]),
        nesterov=True,
        schedule="cosine",
        warmup_epochs=1,
        epochs=EPOCHS,
        batch_size=32,
        scale="unit",
        seed=seed,
    )


def show(epoch):
    """Report an epoch of the first seed, so that a pruner can stop the trial early."""
    report(epoch.epoch, epoch.valid_loss)
    print(f"epoch {epoch.epoch}: validation loss {epoch.valid_loss:.4f}, {epoch.valid_error:.2%}")


def trained(params, seed, train, valid, on_epoch=None):
    """Return a trained network; a restarted trial resumes after its last epoch."""
    folder = os.environ.get("SPEARMINT_TRIAL_DIR")
    checkpoint = Path(folder, f"seed{seed}.npz") if folder else None
    config = network(params, seed)
    return nn.train(
        config, train, valid, on_epoch=on_epoch, checkpoint=checkpoint, resume=bool(checkpoint)
    )


def main(job_id, params):
    """Return the validation loss after the last epoch, in nats per image; mean of two seeds."""
    train, valid, _ = images()
    first = trained(params, SEEDS[0], train, valid, on_epoch=show)
    second = trained(params, SEEDS[1], train, valid)
    return fmean(run.history[-1].valid_loss for run in (first, second))
