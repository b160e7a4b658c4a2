"""Time an epoch of JAX on one GPU, with all steps in one jitted ``lax.scan``.

``benchmarks/trainer_gpu.py`` runs this script, which prints one JSON object;
``formulas_gpu.py`` runs it with an activation and a loss.
"""

from __future__ import annotations

import functools
import json
import statistics
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

from pycuda_nn.bench.workloads import WORKLOADS, initial_weights, make_rows

BLOCKS = 5
UNROLLS = (1, 8)  # steps in the body of the loop; the faster one counts
LR, MOMENTUM = 0.02, 0.9


def main(name: str, precision: str, activation: str = "relu", focal: str = "") -> None:
    """Print the microseconds per step."""
    activate = getattr(jax.nn, activation)
    workload = WORKLOADS[name]
    kind = {"bf16": jnp.bfloat16, "fp16": jnp.float16}.get(precision, jnp.float32)
    exact = {"tf32": "tensorfloat32", "float32": "highest"}.get(precision, "default")
    rows, labels = make_rows(workload, workload.rows)
    x, y = jnp.asarray(rows, kind), jnp.asarray(labels)
    weights = [(jnp.asarray(w.T), jnp.asarray(b)) for w, b in initial_weights(workload)]
    velocity = jax.tree.map(jnp.zeros_like, weights)
    n_steps = workload.rows // workload.batch
    order = np.random.default_rng(0).permutation(workload.rows)[: n_steps * workload.batch]
    batches = jnp.asarray(order.reshape(n_steps, workload.batch).astype(np.int32))

    def loss_of(params, features, targets):
        a = features
        for number, (w, b) in enumerate(params):
            last = number == len(params) - 1
            z = jnp.matmul(a, w.astype(kind), precision=exact) + b.astype(kind)
            a = z.astype(jnp.float32) if last else activate(z)
        picked = jnp.take_along_axis(a, targets[:, None], axis=1)[:, 0]
        entropy = jax.nn.logsumexp(a, axis=1) - picked
        return jnp.mean((1 - jnp.exp(-entropy)) ** 2 * entropy if focal else entropy)

    @functools.partial(jax.jit, static_argnames="unroll")
    def epoch(
        carry, batches, x, y, unroll
    ):  # rows are arguments: constants take a minute to compile
        def step(carry, places):
            params, moments = carry
            loss, grads = jax.value_and_grad(loss_of)(params, x[places], y[places])
            moments = jax.tree.map(lambda v, g: MOMENTUM * v + g, moments, grads)
            params = jax.tree.map(lambda p, v: p - LR * v, params, moments)
            return (params, moments), loss

        return jax.lax.scan(step, carry, batches, unroll=unroll)

    medians = {}
    for unroll in UNROLLS:
        carry, losses = epoch((weights, velocity), batches, x, y, unroll=unroll)
        losses.block_until_ready()
        blocks = []
        for _ in range(BLOCKS):
            began = time.perf_counter()
            carry, losses = epoch(carry, batches, x, y, unroll=unroll)
            losses.block_until_ready()
            blocks.append((time.perf_counter() - began) / n_steps * 1e6)
        medians[unroll] = statistics.median(blocks)
    best = min(medians, key=medians.__getitem__)
    print(json.dumps({"version": jax.__version__, "scan": medians[best], "unroll": best}))


if __name__ == "__main__":
    main(*sys.argv[1:])
