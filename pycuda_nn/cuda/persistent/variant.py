"""Properties of a training that the persistent kernel is compiled for."""

from __future__ import annotations

from dataclasses import dataclass

from pycuda_nn.cuda.runtime.precision import PRECISIONS
from pycuda_nn.cuda.stack import DenseStack
from pycuda_nn.layers import ClassLoss, Logistic, NumberLoss, Softmax, Squared
from pycuda_nn.protocols import AdamHyper, TrainingRecipe

LOSSES = {
    Softmax: "softmax",
    Logistic: "logistic",
    Squared: "squared",
    NumberLoss: "own_numbers",
    ClassLoss: "own_classes",
}


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A variant of the kernel; rates, L2 and the probability of dropout are arguments of a launch.

    Attributes:
        precision: A name of ``runtime.precision.PRECISIONS``.
        activation: ``relu``, ``tanh``, ``sigmoid`` or ``own``, a formula.
        loss: A value of :data:`LOSSES`.
        optimizer: ``momentum``, ``nesterov`` or ``adam``.
        dropout: Whether elements of the hidden layers are dropped.
        targets: Numbers in the target of a row.
        functions: CUDA source of the formulas of activation and loss.
    """

    precision: str
    activation: str
    loss: str
    optimizer: str
    dropout: bool
    targets: int
    functions: str

    @property
    def moments(self) -> int:
        """Moments of a parameter."""
        return 2 if self.optimizer == "adam" else 1

    @property
    def slopes(self) -> bool:
        """Whether slopes are stored because they do not follow from the value."""
        return self.activation == "own"

    @property
    def item_bytes(self) -> int:
        """Size of an activation."""
        return PRECISIONS[self.precision].item_bytes

    @property
    def products(self) -> int:
        """Products of tensor cores for each product: three are as accurate as one of floats."""
        return 3 if self.precision == "float32" else 1

    def definitions(self) -> dict[str, int]:
        """Return macros of the kernel source, without their prefix."""
        names = (self.activation, self.loss, self.optimizer)
        return {
            **{name.upper(): 1 for name in names},
            "EXACT": int(self.products > 1),
            "MOMENTS": self.moments,
            "DROPOUT": int(self.dropout),
            "SLOPES": int(self.slopes),
            "TARGETS": self.targets,
        }


def variant_of(stack: DenseStack, recipe: TrainingRecipe, precision: str) -> Variant:
    """Return the variant for a training that the kernel supports."""
    optimizer = "adam"
    if not isinstance(recipe.optimizer, AdamHyper):
        optimizer = "nesterov" if recipe.optimizer.nesterov else "momentum"
    return Variant(
        precision=precision,
        activation="own" if stack.keeps_z else stack.activation,
        loss=LOSSES[type(stack.loss)],
        optimizer=optimizer,
        dropout=bool(stack.drops),
        targets=1 if stack.loss.of_classes else stack.sizes[-1],
        functions=stack.functions(),
    )
