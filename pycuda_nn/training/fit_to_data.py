"""Make the network and the recipe of the settings for the data, and check that they fit it."""

from __future__ import annotations

from pycuda_nn.config import TrainConfig
from pycuda_nn.data.dataset import Dataset
from pycuda_nn.errors import ConfigError
from pycuda_nn.layers import LOSSES, Loss, loss_of
from pycuda_nn.network import Network
from pycuda_nn.protocols import AdamHyper, SgdHyper, TrainingRecipe
from pycuda_nn.training.large_batch import step_settings

_LOSSES = dict(sorted(LOSSES.items(), reverse=True))  # the order in messages


def network_for(config: TrainConfig, data: Dataset) -> Network:
    """Return the network for ``data``; a loss that does not fit raises ConfigError."""
    loss = config.loss
    if loss == "auto":
        loss = "squared" if data.classes is None else "softmax"
    n_classes = 0 if data.classes is None else len(data.classes)
    _check_loss(loss_of(loss), n_classes, data)
    outputs = loss_of(loss).outputs(n_classes, data.y.shape[-1])
    return Network.from_sizes(
        (data.x.shape[1], *config.hidden, outputs),
        activation=config.activation,
        loss=loss,
        dropout=config.dropout,
    )


def recipe(config: TrainConfig) -> TrainingRecipe:
    """Return the settings of ``config`` that a backend needs."""
    adam = AdamHyper(beta1=config.beta1, beta2=config.beta2, eps=config.eps)
    sgd = SgdHyper(momentum=config.momentum, nesterov=config.nesterov)
    return TrainingRecipe(
        optimizer=adam if config.optimizer == "adam" else sgd,
        batch_size=step_settings(config).batch_size,
        l2=config.l2,
        seed=config.seed,
    )


def check_network(network: Network, data: Dataset) -> Network:
    """Return ``network``; one that does not fit ``data`` raises ConfigError."""
    n_classes = 0 if data.classes is None else len(data.classes)
    _check_loss(network.loss, n_classes, data)
    wanted = data.x.shape[1], network.loss.outputs(n_classes, data.y.shape[-1])
    if (network.inputs, network.outputs) != wanted:
        raise ConfigError(
            f"the network has {network.inputs} inputs and {network.outputs} outputs, "
            f"but {data.name} needs {wanted[0]} and {wanted[1]}"
        )
    return network


def _check_loss(loss: Loss, n_classes: int, data: Dataset) -> None:
    if not loss.fits(n_classes):
        has = f"{n_classes} classes" if n_classes else "real targets"
        good = ", ".join(name for name, other in _LOSSES.items() if other.fits(n_classes))
        own = "logp or p" if n_classes else "z and y"
        raise ConfigError(
            f"loss = '{loss.label}' does not fit {data.name}, which has {has}",
            f"Use {good}, or a formula of {own}.",
        )
