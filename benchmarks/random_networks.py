"""Draw networks for ``trainer_gpu.py --random``: shapes and settings to which nothing was tuned."""

from __future__ import annotations

import itertools

import numpy as np

MOST_WEIGHTS = 3e7


def draw(count: int, seed: int) -> list[str]:
    """Return ``count`` networks as ``pycuda_nn.bench.networks.find`` reads them.

    Widths and minibatches are log-uniform, the other settings uniform.
    """
    random, found = np.random.default_rng(seed), []
    while len(found) < count:
        loss = random.choice(["softmax", "softmax", "logistic", "squared"])
        hidden = random.integers(1, 6)
        widest = _between(random, 64, 4096)
        widths = [_between(random, max(16, widest // 8), widest) for _ in range(hidden)]
        outputs = {"logistic": 1, "squared": _between(random, 1, 64)}.get(loss)
        sizes = [_between(random, 8, 4096), *widths, outputs or _between(random, 2, 1000)]
        if sum(i * o for i, o in itertools.pairwise(sizes)) > MOST_WEIGHTS:
            continue
        words = ["-".join(map(str, sizes)), f"b={_between(random, 16, 4096)}", loss]
        words.append(random.choice(["sgd", "adam"]))
        if random.random() < 0.5:
            words.append(f"dropout={random.integers(1, 6) / 10}")
        found.append(",".join(words))
    return found


def _between(random: np.random.Generator, low: int, high: int) -> int:
    return round(float(np.exp(random.uniform(np.log(low), np.log(high)))))
