"""Train the trials of a search as networks that train at once."""

from pycuda_nn.spearmint_trials.job import train_trials
from pycuda_nn.spearmint_trials.search import run_trials

__all__ = ["run_trials", "train_trials"]
