"""What a fake training must compute, in numpy: sums in the order of the ranks, in float32."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pycuda_nn.cuda.step.weights import hyper_scalars, optimizer_number
from tests.pycuda_nn.cuda.parallel.fakes.step import Array
from tests.pycuda_nn.cuda.parallel.fakes.training import F32, FakeTraining


@dataclass
class Twin:
    """Weights, moments and losses in the layout of the device."""

    training: FakeTraining
    threads: int
    params: Array = field(init=False)
    first: Array = field(init=False)
    second: Array = field(init=False)
    losses: Array = field(init=False)

    def __post_init__(self) -> None:
        t = self.training
        self.params = t.plan.layout.spread(t.params)
        self.first, self.second = np.zeros_like(self.params), np.zeros_like(self.params)
        self.losses = np.zeros((t.case.size, t.steps), F32)
        hyper = hyper_scalars(t.plan.recipe)
        self.hyper = {name: F32(value) for name, value in hyper.items()}
        self.kind = optimizer_number(t.plan.recipe)

    def step(self, number: int) -> None:
        """Train one step."""
        t, layers = self.training, self.training.plan.layout.layers
        before = t.widened(t.plan.precision.rounded(self.params))
        for i, layer in enumerate(layers):
            at = slice(layer.weights, layer.weights + layer.inputs * layer.outputs)
            below = layers[i + 1] if i + 1 < len(layers) else None
            back = None if below is None else before[
                below.weights : below.weights + below.inputs * below.outputs
            ]  # fmt: skip
            total = None
            for rank in t.ranks:
                g = t.gradient(rank.rank, number, i, before[at], back) if rank.rows else F32(0)
                total = g + np.zeros(at.stop - at.start, F32) if total is None else total + g
            self._update(at, total, F32(self.hyper["l2"]), number)
            bias = slice(layer.bias, layer.bias + layer.outputs)
            sums = np.zeros(layer.outputs, F32)
            for rank in t.ranks:
                sums = sums + self._bias_sums(rank, number, i, before[bias])
            self._update(bias, sums, F32(0), number)
        for rank in t.ranks:
            if rank.rows:
                self.losses[rank.rank, number] = self._loss(rank, number)

    def _update(self, at: slice, g: Any, l2: Any, number: int) -> None:
        w, rate, h = self.params[at], self.training.rates[number], self.hyper
        one, m = F32(1), self.hyper["momentum"]
        g = g + l2 * w
        if self.kind == 2:
            first = self.first[at] = m * self.first[at] + (one - m) * g
            second = self.second[at] = h["beta2"] * self.second[at] + (one - h["beta2"]) * g * g
            new = w - rate * first / (np.sqrt(second) + h["eps"])
        else:
            first = self.first[at] = m * self.first[at] + g
            new = w - rate * (g + m * first if self.kind == 1 else first)
        self.params[at] = new

    def _bias_sums(self, rank: Any, step: int, number: int, bias: Array) -> Array:
        """Return the sums of the partial sums, as sum_of_column adds them."""
        u = rank.kernels.update_arguments(number, 0)
        parts = self.training.partials(rank.rank, step, number, u.parts, bias)
        groups = self.threads // 32
        total = np.zeros(len(bias), F32)
        for group in range(groups):
            mine = np.zeros(len(bias), F32)
            for part in range(group, u.parts, groups):
                mine = mine + parts[part]
            total = total + mine
        return total * F32(u.bias_scale)

    def _loss(self, rank: Any, step: int) -> Any:
        parts = rank.kernels.update_arguments(rank.context.last, 0).loss_parts
        values = self.training.losses_of(rank.rank, step, parts)
        lanes = np.zeros(32, F32)
        for p in range(0, parts, 32):
            some = values[p : p + 32]
            lanes[: len(some)] = lanes[: len(some)] + some
        for lane in (16, 8, 4, 2, 1):
            lanes = lanes + lanes[np.arange(32) ^ lane]
        return lanes[0] / F32(rank.rows)
