"""Time an epoch of many networks in JAX: vmap of a step in one jitted ``lax.scan``, unrolled.

``benchmarks/train_many_gpu.py`` runs this script, which prints one JSON object.
"""

from __future__ import annotations

import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

ROWS, MOMENTUM, BETA2, EPS = 1 << 16, 0.9, 0.999, 1e-8
KINDS = {"bf16": jnp.bfloat16, "fp16": jnp.float16}


def main(sizes_text: str, batch_text: str, count_text: str, precision: str, optimizer: str) -> None:
    """Print the microseconds of a network's step, the better of two unrollings."""
    sizes, batch, count = tuple(map(int, sizes_text.split(","))), int(batch_text), int(count_text)
    step = step_of(precision, optimizer)
    rows = arrays(sizes, batch, count, KINDS.get(precision, jnp.float32))
    us = min(timed(step, *rows, unroll=unroll) / count * 1e6 for unroll in (1, 8))
    print(json.dumps({"version": jax.__version__, "us": us}))


def arrays(sizes: tuple[int, ...], batch: int, count: int, kind: Any) -> tuple[Any, ...]:
    """Return parameters, rates and orders of each network, and the rows of all."""
    draw, steps = np.random.default_rng(0), ROWS // batch
    x = jnp.asarray(draw.standard_normal((ROWS, sizes[0]), dtype=np.float32), kind)
    y = jnp.asarray(draw.integers(0, sizes[-1], ROWS))
    params = [
        (
            jnp.asarray(draw.uniform(-(i**-0.5), i**-0.5, (count, i, o)).astype(np.float32)),
            jnp.zeros((count, o), jnp.float32),
        )
        for i, o in itertools.pairwise(sizes)
    ]
    orders = np.stack([draw.permutation(ROWS)[: steps * batch] for _ in range(count)])
    places = jnp.asarray(orders.reshape(count, steps, batch).swapaxes(0, 1).astype(np.int32))
    return params, jnp.linspace(1e-3, 2e-2, count), places, x, y


def step_of(precision: str, optimizer: str) -> Callable[..., tuple[Any, ...]]:
    """Return a step of one network."""
    kind = KINDS.get(precision, jnp.float32)
    exact = {"tf32": "tensorfloat32", "float32": "highest"}.get(precision, "default")

    def loss_of(params, features, targets):
        a = features
        for number, (w, b) in enumerate(params):
            last = number == len(params) - 1
            z = jnp.matmul(a, w.astype(kind), precision=exact) + b.astype(kind)
            a = z.astype(jnp.float32) if last else jax.nn.relu(z)
        picked = jnp.take_along_axis(a, targets[:, None], axis=1)[:, 0]
        return jnp.mean(jax.nn.logsumexp(a, axis=1) - picked)

    def step(params, first, second, rate, rows, x, y):
        loss, grads = jax.value_and_grad(loss_of)(params, x[rows], y[rows])
        tree = jax.tree.map
        if optimizer == "adam":
            first = tree(lambda m, g: MOMENTUM * m + (1 - MOMENTUM) * g, first, grads)
            second = tree(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, second, grads)
            params = tree(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + EPS), params, first, second)
        else:
            first = tree(lambda v, g: MOMENTUM * v + g, first, grads)
            params = tree(lambda p, v: p - rate * v, params, first)
        return params, first, second, loss

    return step


def timed(
    step: Callable[..., Any], params: Any, rates: Any, places: Any, x: Any, y: Any, *, unroll: int
) -> float:
    """Return the seconds of a step of all networks, the median of three epochs."""
    many = jax.vmap(step, in_axes=(0, 0, 0, 0, 0, None, None))

    @jax.jit
    def epoch(carry, places, x, y):
        def one(carry, rows):
            *carry, loss = many(*carry, rates, rows, x, y)
            return tuple(carry), loss

        return jax.lax.scan(one, carry, places, unroll=unroll)

    zeros = jax.tree.map(jnp.zeros_like, params)
    carry, losses = epoch((params, zeros, zeros), places, x, y)
    losses.block_until_ready()
    blocks = []
    for _ in range(3):
        began = time.perf_counter()
        carry, losses = epoch(carry, places, x, y)
        losses.block_until_ready()
        blocks.append((time.perf_counter() - began) / len(places))
    return statistics.median(blocks)


if __name__ == "__main__":
    main(*sys.argv[1:])
