"""Networks for the training benchmarks, by name or spelled."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from pycuda_nn.bench.workloads import KNOWN, Workload
from pycuda_nn.errors import did_you_mean

_ROWS = 1 << 17
_LOSSES, _OPTIMIZERS = ("softmax", "logistic", "squared"), ("sgd", "adam")
_EXPECTED = "expected SIZES[,b=ROWS][,softmax|logistic|squared][,sgd|adam][,dropout=P]"


def find(text: str) -> Workload:
    """Return a known workload, or one that ``text`` spells, such as ``784-300-10,b=64,adam``.

    A spelled one has minibatches of 128 rows, softmax (squared for one output), momentum SGD and
    no dropout, unless it names others.

    Raises:
        ValueError: Neither is possible, with the reason.
    """
    if text in KNOWN:
        return KNOWN[text]
    sizes, *words = text.split(",")
    if not re.fullmatch(r"[0-9]+(-[0-9]+)+", sizes):
        raise ValueError(
            f"'{text}'. {did_you_mean(text, KNOWN)} To time another network: {_EXPECTED}"
        )
    numbers = tuple(map(int, sizes.split("-")))
    if len(numbers) < 3 or min(numbers) < 1:
        raise ValueError(
            f"'{text}': sizes are inputs, hidden layers and outputs, such as 784-300-10"
        )
    loss = "softmax" if numbers[-1] > 1 else "squared"
    workload = Workload(name=text, sizes=numbers, batch=128, rows=_ROWS, loss=loss)
    for word in words:
        workload = dataclasses.replace(workload, **_setting(text, word))
    if (workload.loss == "logistic") > (numbers[-1] == 1):
        raise ValueError(f"'{text}': logistic has 1 output")
    if (workload.loss == "softmax") > (numbers[-1] > 1):
        raise ValueError(f"'{text}': softmax has at least 2 outputs")
    return dataclasses.replace(workload, rows=max(_ROWS, 16 * workload.batch))


def _setting(text: str, word: str) -> dict[str, Any]:
    """Return the attribute that one word of ``text`` sets."""
    if word in _LOSSES:
        return {"loss": word}
    if word in _OPTIMIZERS:
        return {"optimizer": word}
    name, _, value = word.partition("=")
    if name == "b" and re.fullmatch(r"[0-9]+", value) and int(value):
        return {"batch": int(value)}
    if name == "dropout" and re.fullmatch(r"0?\.[0-9]+|0", value):
        return {"dropout": float(value)}
    raise ValueError(f"'{text}': invalid setting '{word}': {_EXPECTED}")
