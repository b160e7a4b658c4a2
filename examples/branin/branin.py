"""The Branin function, scaled to the unit square (Dixon and Szego 1978)."""

import math


def main(job_id, params):
    """Return the Branin function at ``X``: x1 in -5..10, x2 in 0..15."""
    x1 = 15.0 * params["X"][0] - 5.0
    x2 = 15.0 * params["X"][1]
    bowl = x2 - 5.1 / (4.0 * math.pi**2) * x1**2 + 5.0 / math.pi * x1 - 6.0
    value = bowl**2 + 10.0 * (1.0 - 1.0 / (8.0 * math.pi)) * math.cos(x1) + 10.0
    print(f"trial {job_id}: branin({x1:.4f}, {x2:.4f}) = {value:.6f}")
    return value
