"""Layers and losses of networks: one per file, with its kernels in the ``.cuh`` file next to it."""

from pycuda_nn.layers.activation import ACTIVATIONS, Activation
from pycuda_nn.layers.base import Layer, Parameter, from_description
from pycuda_nn.layers.dense import Dense
from pycuda_nn.layers.dropout import Dropout
from pycuda_nn.layers.logistic import Logistic
from pycuda_nn.layers.loss import Loss, LossKernels
from pycuda_nn.layers.memory import Memory
from pycuda_nn.layers.own_loss import ClassLoss, NumberLoss, own_loss
from pycuda_nn.layers.softmax import Softmax
from pycuda_nn.layers.squared import Squared

LOSSES: dict[str, Loss] = {loss.name: loss for loss in (Softmax(), Logistic(), Squared())}


def loss_of(name: str) -> Loss:
    """Return a loss of :data:`LOSSES`, or the loss of a formula. Raises ConfigError."""
    return LOSSES[name] if name in LOSSES else own_loss(name)


__all__ = [
    "ACTIVATIONS",
    "LOSSES",
    "Activation",
    "ClassLoss",
    "Dense",
    "Dropout",
    "Layer",
    "Logistic",
    "Loss",
    "LossKernels",
    "Memory",
    "NumberLoss",
    "Parameter",
    "Softmax",
    "Squared",
    "from_description",
    "loss_of",
]
