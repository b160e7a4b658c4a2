"""What the ranks exchange in the tests of an exchange, and what must come out."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.cuda.runtime.precision import PRECISIONS
from pycuda_nn.cuda.stack import NotCovered, recognise
from pycuda_nn.cuda.step.plan import TrainingPlan
from pycuda_nn.cuda.step.weights import hyper_scalars, rates_of
from pycuda_nn.network import Network
from pycuda_nn.protocols import AdamHyper, SgdHyper, TrainingRecipe

Array = npt.NDArray[Any]

OPTIMIZERS: tuple[SgdHyper | AdamHyper, ...] = (
    SgdHyper(momentum=0.9, nesterov=False),
    SgdHyper(momentum=0.9, nesterov=True),
    AdamHyper(beta1=0.9, beta2=0.999, eps=1e-8),
)
WIDTHS, ROWS, TURNS = (32, 80, 48, 16), 8, 5


def sample_plan(optimizer: SgdHyper | AdamHyper, precision: str) -> TrainingPlan:
    """Return the plan of a network without padding."""
    stack = recognise(Network.from_sizes(WIDTHS, activation="tanh", loss="squared"))
    assert not isinstance(stack, NotCovered)  # noqa: S101 - layers of the built-in kinds
    recipe = TrainingRecipe(optimizer=optimizer, batch_size=ROWS, l2=1e-2, seed=0)
    return TrainingPlan(stack=stack, recipe=recipe, precision=PRECISIONS[precision])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Turns:
    """What the ranks exchange; the sums of all gradients are exact in every precision.

    Attributes:
        params: Parameters before the first turn.
        gradients: Gradient of all weights, (turns, ranks, weights).
        partials: Partial sums of the gradient of all biases, (turns, ranks, biases).
        rates: Learning rate of each turn.
    """

    params: Array
    gradients: Array
    partials: Array
    rates: Array

    @classmethod
    def sample(cls, plan: TrainingPlan, size: int) -> Turns:
        """Return random turns for ``size`` ranks."""
        rng, layout = np.random.default_rng(size), plan.layout
        shape = (TURNS, size, layout.n_params)
        numbers = (rng.integers(-8, 9, shape) / 8).astype(np.float32)
        rates = rates_of(plan.recipe, np.linspace(0.02, 0.01, TURNS), 0)
        return cls(
            params=rng.standard_normal(layout.n_params, dtype=np.float32),
            gradients=numbers[:, :, : layout.n_weights],
            partials=numbers[:, :, layout.n_weights :],
            rates=rates,
        )

    def result(self, plan: TrainingPlan) -> dict[str, Array]:
        """Return parameters and moments after all turns, in float64."""
        w, h = self.params.astype(np.float64), hyper_scalars(plan.recipe)
        first, second = np.zeros_like(w), np.zeros_like(w)
        n, optimizer, b1 = plan.layout.n_weights, plan.recipe.optimizer, h["momentum"]
        for gradient, partial, rate in zip(
            self.gradients, self.partials, self.rates.astype(np.float64), strict=True
        ):
            weights, biases = gradient.sum(axis=0) + h["l2"] * w[:n], partial.sum(axis=0)
            g = np.concatenate([weights, biases])
            if isinstance(optimizer, AdamHyper):
                first = b1 * first + (1 - b1) * g
                second = h["beta2"] * second + (1 - h["beta2"]) * g * g
                w -= rate * first / (np.sqrt(second) + h["eps"])
            else:
                first = b1 * first + g
                w -= rate * (g + b1 * first if optimizer.nesterov else first)
        names = ("m", "v") if isinstance(optimizer, AdamHyper) else ("velocity",)
        return {"params": w, **dict(zip(names, (first, second), strict=False))}
