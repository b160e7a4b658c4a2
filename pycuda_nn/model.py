"""A trained network with its scaling and labels: predicts from raw features."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.backends.numpy.evaluation import Evaluator
from pycuda_nn.data.arrays import Label, check_features
from pycuda_nn.data.dataset import Dataset, in_order
from pycuda_nn.data.scaling import Scaler, TargetScaler, scaled
from pycuda_nn.data.sources import load_features
from pycuda_nn.data.table import Encoding
from pycuda_nn.errors import DataError, EmptyData
from pycuda_nn.network import Network
from pycuda_nn.protocols import Metrics

Array = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A trained network; it predicts on the CPU, even if a GPU trained it.

    Example:
        >>> import pycuda_nn as nn
        >>> data = nn.load_data("digits")
        >>> model = nn.train(nn.TrainConfig(epochs=1), data).model
        >>> model.predict(data.x[:5]).shape
        (5,)

    Attributes:
        network: Layers and loss.
        params: Flat float32 buffer of all weights, then all biases.
        scaler: Scales the features before the first layer; ``None`` for no scaling.
        classes: Label of each class number; ``None`` for regression.
        columns: Names of the features; ``None`` if the training data had no names.
        targets: Scales the targets; ``None`` for classes, or if trained on unscaled targets.
        encoding: Makes the features from the columns of a table; ``None`` if trained on arrays.
    """

    network: Network
    params: npt.NDArray[np.float32]
    scaler: Scaler | None
    classes: tuple[Label, ...] | None
    columns: tuple[str, ...] | None = None
    targets: TargetScaler | None = None
    encoding: Encoding | None = None

    def predict(self, x: Array | str | Path) -> Array:
        """Return the label of each row, shape (n,); for regression the values, shape (n, k).

        ``x`` are features as in training, or a file with the columns of the training.
        """
        if self.classes is None:
            outputs = self._outputs(x)
            return outputs if self.targets is None else self.targets.invert(outputs)
        numbers = self.predict_proba(x).argmax(axis=1)
        labels: Array = np.array(self.classes)[numbers]
        return labels

    def predict_proba(self, x: Array | str | Path) -> Array:
        """Return the probability of each class, shape (n, number of classes), float32.

        ``x`` is as in :meth:`predict`.
        """
        if self.classes is None:
            raise DataError("a regression model does not predict probabilities", "Use predict.")
        z = self.network.loss.logits(self._outputs(x))
        z -= z.max(axis=1, keepdims=True)
        np.exp(z, out=z)
        z /= z.sum(axis=1, keepdims=True)
        return z

    def _outputs(self, x: Array | str | Path) -> Array:
        if isinstance(x, str | Path):
            width = self.network.inputs
            x, _ = load_features(x, width=width, columns=self.columns, encoding=self.encoding)
        features = check_features(x, name="rows to predict", columns=self.columns)
        width = self.network.inputs
        if features.shape[1] != width:
            raise DataError(
                f"rows to predict: {features.shape[1]} columns, but the model needs {width}",
                "Pass the columns that the model was trained on.",
            )
        out = np.empty((len(features), self.network.outputs), dtype=np.float32)
        weights = self.network.views_by_layer(self.params)
        for rows, z in Evaluator(self.network).outputs(weights, scaled(features, self.scaler)):
            out[rows] = z
        return out


def evaluate(model: Model, data: Dataset) -> Metrics:
    """Return the loss and error of ``model`` on ``data``.

    Example:
        >>> import pycuda_nn as nn
        >>> train, valid, test = nn.split(nn.load_data("digits"))
        >>> model = nn.train(nn.TrainConfig(epochs=5), train).model
        >>> 0 < nn.evaluate(model, test).loss < 1
        True

    Raises:
        DataError: The columns or labels differ from those of the training data.
    """
    if data.x.shape[1] != model.network.inputs:
        raise DataError(
            f"{data.name}: {data.x.shape[1]} columns, but the model needs {model.network.inputs}",
            "Pass the columns that the model was trained on.",
        )
    if not in_order(data.columns, model.columns):
        raise DataError(
            f"{data.name}: other columns, or another order, than in training",
            "Load it with load_data(..., columns=model.columns) or, a table, "
            "load_data(..., encoding=model.encoding).",
        )
    if not len(data):
        raise EmptyData(
            f"{data.name}: no rows to evaluate", "Set the fraction of this part above 0."
        )
    y = _targets(model, data)
    weights = model.network.views_by_layer(model.params)
    if model.targets is not None:
        y = model.targets.apply(y)
    elif model.classes is None:
        y = y.astype(np.float32, copy=False)
    metrics = Evaluator(model.network).metrics(weights, scaled(data.x, model.scaler), y)
    if model.targets is None:
        return metrics
    loss, error = model.targets.in_unit(metrics.loss, metrics.error)
    return Metrics(loss=loss, error=error)


def _targets(model: Model, data: Dataset) -> Array:
    """Return the targets of ``data`` in the class numbers of ``model``."""
    if (model.classes is None) != (data.classes is None):
        kinds = ("real targets", "classes")
        raise DataError(
            f"{data.name} has {kinds[data.classes is not None]}, "
            f"but the model was trained on {kinds[model.classes is not None]}",
            "Load the data with the task of the training.",
        )
    if model.classes is None or data.classes is None:
        if data.y.shape[1] != model.network.outputs:
            raise DataError(
                f"{data.name}: {data.y.shape[1]} targets, but the model predicts "
                f"{model.network.outputs}"
            )
        return data.y
    if data.classes == model.classes:
        return data.y
    labels = np.array(data.classes)[data.y]
    checked = Dataset.from_arrays(data.x, labels, classes=model.classes, name=data.name)
    return checked.y
