"""Train a network: training loop, learning rates, early stopping and checkpoints."""

from pycuda_nn.training.checkpoint import load_model
from pycuda_nn.training.history import EpochReport
from pycuda_nn.training.loop import TrainResult, train

__all__ = ["EpochReport", "TrainResult", "load_model", "train"]
