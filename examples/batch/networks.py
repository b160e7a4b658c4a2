"""The trials of a job: networks for digits, which train at once on one GPU or CPU."""

import pycuda_nn as nn
from pycuda_nn.spearmint_trials import train_trials


def config(params):
    """Return the settings for the parameters of a trial."""
    numbers = {name: float(values[0]) for name, values in params.items()}
    return nn.TrainConfig(hidden=(64,), epochs=15, **numbers)


def main_batch(trials):
    """Train a network for each of ``trials``; each gets its lowest validation error."""
    train, valid, _ = nn.split(nn.load_data("digits"), seed=0)
    train_trials(trials, config, train, valid)
