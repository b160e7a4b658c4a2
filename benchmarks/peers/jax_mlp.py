"""Time an epoch of JAX on one GPU, with all steps in one jitted ``lax.scan``, unrolled or not.

``benchmarks/trainer_gpu.py`` runs this script with ``NAME:PRECISION`` words, and reads one JSON
object for each; ``formulas_gpu.py`` runs it with a name, a precision, an activation and a loss.
"""

from __future__ import annotations

import functools
import json
import os
import statistics
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

from pycuda_nn.bench.networks import find
from pycuda_nn.bench.workloads import Workload, initial_weights, make_rows

BLOCKS = int(os.environ.get("BENCH_BLOCKS", "5"))
# Steps in the body of the loop; the fastest counts
UNROLLS = tuple(map(int, os.environ.get("BENCH_UNROLLS", "1,8").split(",")))
LR, MOMENTUM = 0.02, 0.9
ADAM_LR, B1, B2, EPS = 0.001, 0.9, 0.999, 1e-8
jax.config.update("jax_default_prng_impl", "rbg")  # the fastest on a GPU: for dropout


def measure(name: str, precision: str, activation: str = "relu", focal: str = "") -> dict:
    """Return the microseconds per step."""
    workload = find(name)
    kind = {"bf16": jnp.bfloat16, "fp16": jnp.float16}.get(precision, jnp.float32)
    rows, targets = make_rows(workload, workload.rows)
    x, y = jnp.asarray(rows, kind), jnp.asarray(targets)
    weights = [(jnp.asarray(w.T), jnp.asarray(b)) for w, b in initial_weights(workload)]
    moments = [jax.tree.map(jnp.zeros_like, weights) for _ in range(2)]
    n_steps = workload.rows // workload.batch
    order = np.random.default_rng(0).permutation(workload.rows)[: n_steps * workload.batch]
    batches = jnp.asarray(order.reshape(n_steps, workload.batch).astype(np.int32))
    loss_of = _loss(workload, kind, precision, getattr(jax.nn, activation), bool(focal))
    step = functools.partial(_step, workload, loss_of)

    @functools.partial(jax.jit, static_argnames="unroll")
    def epoch(carry, batches, x, y, unroll):  # constants instead of arguments compile for a minute
        return jax.lax.scan(lambda c, places: step(c, x[places], y[places]), carry, batches,
                            unroll=unroll)  # fmt: skip

    medians = {}
    for unroll in UNROLLS:
        carry = (weights, *moments, jax.random.key(0), jnp.zeros((), jnp.int32))
        carry, losses = epoch(carry, batches, x, y, unroll=unroll)
        losses.block_until_ready()
        blocks = []
        for _ in range(BLOCKS):
            began = time.perf_counter()
            carry, losses = epoch(carry, batches, x, y, unroll=unroll)
            losses.block_until_ready()
            blocks.append((time.perf_counter() - began) / n_steps * 1e6)
        medians[unroll] = statistics.median(blocks)
    best = min(medians, key=medians.__getitem__)
    return {"version": jax.__version__, "scan": medians[best], "unroll": best}


def _loss(workload: Workload, kind, precision: str, activate, focal: bool):
    exact = {"tf32": "tensorfloat32", "float32": "highest"}.get(precision, "default")

    def loss_of(params, features, targets, key):
        a = features
        for number, (w, b) in enumerate(params):
            last = number == len(params) - 1
            z = jnp.matmul(a, w.astype(kind), precision=exact) + b.astype(kind)
            a = z.astype(jnp.float32) if last else activate(z)
            if workload.dropout and not last:
                kept = 1 - workload.dropout
                on = jax.random.bernoulli(jax.random.fold_in(key, number), kept, a.shape)
                a = jnp.where(on, a / kept, 0).astype(kind)
        if workload.loss == "squared":
            return jnp.mean(0.5 * jnp.sum((a - targets) ** 2, axis=1))
        if workload.loss == "logistic":
            return jnp.mean(jax.nn.softplus(a[:, 0]) - a[:, 0] * targets)
        picked = jnp.take_along_axis(a, targets[:, None], axis=1)[:, 0]
        entropy = jax.nn.logsumexp(a, axis=1) - picked
        return jnp.mean((1 - jnp.exp(-entropy)) ** 2 * entropy if focal else entropy)

    return loss_of


def _step(workload: Workload, loss_of, carry, features, targets):
    params, first, second, key, count = carry
    count = count + 1
    of_step = jax.random.fold_in(key, count) if workload.dropout else key
    loss, grads = jax.value_and_grad(loss_of)(params, features, targets, of_step)
    if workload.optimizer == "adam":
        t = count.astype(jnp.float32)
        rate = ADAM_LR * jnp.sqrt(1 - B2**t) / (1 - B1**t)
        first = jax.tree.map(lambda m, g: B1 * m + (1 - B1) * g, first, grads)
        second = jax.tree.map(lambda v, g: B2 * v + (1 - B2) * g * g, second, grads)
        params = jax.tree.map(
            lambda p, m, v: p - rate * m / (jnp.sqrt(v) + EPS), params, first, second
        )
    else:
        first = jax.tree.map(lambda v, g: MOMENTUM * v + g, first, grads)
        params = jax.tree.map(lambda p, v: p - LR * v, params, first)
    return (params, first, second, key, count), loss


if __name__ == "__main__":
    if ":" in sys.argv[1]:
        for word in sys.argv[1:]:
            name, precision = word.split(":")
            try:
                found = measure(name, precision)
            except Exception as error:  # noqa: BLE001 - the others are still measured
                found = {"error": repr(error)[:300]}
            print(json.dumps({"workload": name, "precision": precision, **found}), flush=True)
    else:
        print(json.dumps(measure(*sys.argv[1:])))
