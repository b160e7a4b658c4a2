from __future__ import annotations

import numpy as np

from pycuda_nn.backends.numpy import ops
from pycuda_nn.protocols import AdamHyper, SgdHyper

RNG = np.random.default_rng(0)
STEPS = [(RNG.normal(size=50), rate) for rate in (0.1, 0.05, 0.2, 0.01)]


def test_sgd_is_its_formula() -> None:
    p, v = np.ones(50), np.zeros(50)
    want_p, want_v = p.copy(), v.copy()
    for g, lr in STEPS:
        ops.sgd_step(p, g.copy(), v, SgdHyper(momentum=0.9, nesterov=False), lr, np.empty(50))
        want_v = 0.9 * want_v + g
        want_p = want_p - lr * want_v
    np.testing.assert_allclose(p, want_p, rtol=1e-12)
    np.testing.assert_allclose(v, want_v, rtol=1e-12)


def test_nesterov_is_its_formula() -> None:
    p, v = np.ones(50), np.zeros(50)
    want_p, want_v = p.copy(), v.copy()
    for g, lr in STEPS:
        ops.sgd_step(p, g.copy(), v, SgdHyper(momentum=0.9, nesterov=True), lr, np.empty(50))
        want_v = 0.9 * want_v + g
        want_p = want_p - lr * (g + 0.9 * want_v)
    np.testing.assert_allclose(p, want_p, rtol=1e-12)


def test_adam_is_algorithm_1() -> None:
    """The reference has eps inside the corrected root, as printed; only eps differs."""
    p, m, v = np.ones(50), np.zeros(50), np.zeros(50)
    want, a, b = p.copy(), m.copy(), v.copy()
    b1, b2 = float(np.float32(0.9)), float(np.float32(0.999))
    hyper = AdamHyper(beta1=0.9, beta2=0.999, eps=1e-12)
    for t, (g, lr) in enumerate(STEPS, start=1):
        ops.adam_step(p, g.copy(), m, v, hyper, lr, t, np.empty(50))
        a, b = b1 * a + (1 - b1) * g, b2 * b + (1 - b2) * g * g
        want = want - lr * (a / (1 - b1**t)) / (np.sqrt(b / (1 - b2**t)) + 1e-12)
    np.testing.assert_allclose(p, want, rtol=1e-8)


def test_gather_copies_the_rows_in_order() -> None:
    x, out = np.arange(12.0).reshape(6, 2), np.empty((3, 2))
    ops.gather(x, np.array([5, 0, 5]), out)
    np.testing.assert_array_equal(out, [[10, 11], [0, 1], [10, 11]])
