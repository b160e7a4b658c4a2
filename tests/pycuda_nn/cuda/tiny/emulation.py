"""Compile the tiny kernel for the CPU: see emulator.h."""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.cuda.layout import ParameterLayout
from pycuda_nn.cuda.runtime import structs
from pycuda_nn.cuda.runtime.compiler import kernel_source
from pycuda_nn.cuda.stack import DenseStack, recognise
from pycuda_nn.cuda.tiny.kernel import FILES, ONE, SHARED_FILES
from pycuda_nn.cuda.tiny.plan import TinyPlan
from pycuda_nn.cuda.tiny.recognise import optimizer_of
from pycuda_nn.network import Network
from pycuda_nn.protocols import AdamHyper, SgdHyper, Split, TrainingRecipe
from pycuda_nn.rng import Purpose

Array = npt.NDArray[Any]
_HERE = Path(__file__).parent
_SHARED = "extern __shared__ __align__(128) float s[];"
_ENTRIES = """
extern "C" bool emulate(const ARGUMENT* a, unsigned seed, int networks) {
  emulator::kernel = [a] { tiny_steps(*a); };
  return emulator::run(BLOCKS, THREADS, 4 * WORDS, seed, networks);
}
extern "C" int shared_bytes() { return 4 * WORDS; }
extern "C" int params() { return PARAMS; }
extern "C" int argument_bytes() { return sizeof(ARGUMENT); }
"""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A training on random rows; the last minibatch of an epoch has fewer rows."""

    sizes: tuple[int, ...]
    batch: int
    optimizer: AdamHyper | SgdHyper
    loss: str = "softmax"
    activation: str = "relu"
    dropout: float = 0.0
    l2: float = 0.0
    blocks: int = 1
    threads: int = 64
    precision: str = "float32"
    cluster: bool = False
    rows: int = 0

    @property
    def network(self) -> Network:
        return Network.from_sizes(
            self.sizes, activation=self.activation, loss=self.loss, dropout=self.dropout
        )

    @property
    def recipe(self) -> TrainingRecipe:
        return TrainingRecipe(
            optimizer=self.optimizer, batch_size=self.batch, l2=self.l2, seed=2**40 + 3
        )

    @property
    def plan(self) -> TinyPlan:
        stack = recognise(self.network)
        assert isinstance(stack, DenseStack), stack
        return TinyPlan(
            stack=stack, batch=self.batch, precision=self.precision,
            optimizer=optimizer_of(self.recipe), blocks=self.blocks, threads=self.threads,
            cluster=self.cluster,
        )  # fmt: skip

    def part(self) -> Split:
        """Return 3.4 minibatches, or ``rows`` rows."""
        rng = np.random.default_rng(1)
        n = self.rows or 3 * self.batch + (2 * self.batch + 4) // 5
        x = rng.normal(size=(n, self.sizes[0])).astype(np.float32)
        if self.precision == "bf16":
            x = (x.view(np.uint32) & 0xFFFF0000).view(np.float32)
        if self.plan.stack.loss.of_classes:
            return Split(x=x, y=rng.integers(0, max(2, self.sizes[-1]), n).astype(np.int32))
        return Split(x=x, y=rng.normal(size=(n, self.sizes[-1])).astype(np.float32))

    def device_arrays(self) -> dict[str, Array]:
        """Return rows and targets as they are in GPU memory."""
        part = self.part()
        x = np.zeros((len(part.x), ParameterLayout(self.network).sizes[0]), dtype=np.float32)
        x[:, : part.x.shape[1]] = part.x
        if self.precision == "bf16":
            x = (x.view(np.uint32) >> 16).astype(np.uint16)
        return {"x": x, "y": part.y}


def factors(case: Case, rates: Array, first: int) -> Array:
    """Return the rates with the bias corrections of Adam, from step ``first``."""
    if not isinstance(case.optimizer, AdamHyper):
        return rates
    return np.array(
        [case.optimizer.scalars(float(lr), first + k + 1)[0] for k, lr in enumerate(rates)],
        dtype=np.float32,
    )


def emulated_source(plan: TinyPlan, entry: tuple[str, ...] = ONE, argument: str = "Tiny") -> str:
    """Return C++ for the host of the kernel with these files of its entry and this argument."""
    shared = kernel_source(*SHARED_FILES, plan.stack.kernels.source)
    layout, device, *others = (kernel_source(name) for name in FILES)
    assert device.startswith("// Instructions of the tiny kernel that the emulator")
    kernel = "\n".join([*others, kernel_source(*entry)])
    assert kernel.count(_SHARED) == 1
    kernel = kernel.replace(_SHARED, "float* s = emulator::current->block->shared;")
    emulator, replaced = ((_HERE / name).read_text() for name in ("emulator.h", "device.h"))
    head = emulator + plan.source() + plan.stack.functions()
    return head + shared + layout + replaced + kernel + _ENTRIES.replace("ARGUMENT", argument)


class Emulation:
    """The kernel of a case on the CPU, with its state in the padded layout."""

    def __init__(self, case: Case, folder: Path, *, source: str | None = None) -> None:
        self.case, self.plan = case, case.plan
        self._library = self.built(folder, source or emulated_source(self.plan))
        assert self._library.argument_bytes() == ctypes.sizeof(structs.Tiny)
        assert self._library.params() == self.plan.params
        assert self._library.shared_bytes() == self.plan.shared_bytes

    def built(self, folder: Path, source: str) -> Any:
        """Compile a kernel of the same plan in a folder, and load it."""
        given, made = folder / "kernel.cc", folder / "kernel.so"
        given.write_text(source)
        flags = ["-std=c++17", "-O1", "-fno-strict-aliasing", "-w", "-shared", "-fPIC"]
        subprocess.run(
            [
                "g++",
                *flags,
                *(word for word in self.plan.macros() if word.startswith("-D")),
                "-o",
                str(made),
                str(given),
            ],
            check=True,
        )
        library = ctypes.CDLL(str(made))
        library.emulate.restype = ctypes.c_bool
        return library

    def run(
        self,
        state: dict[str, Array],
        order: Array,
        rates: Array,
        *,
        launches: tuple[int, ...] = (),
        step: int = 0,
        seed: int = 0,
    ) -> Array:
        """Train an epoch; update ``state`` and return the losses.

        Args:
            launches: Steps of each launch; all in one by default.
            step: Steps of earlier epochs.
            seed: Determines the order in which threads run.
        """
        case, layout = self.case, ParameterLayout(self.case.network)
        names = ("params", "m", "v") if "m" in state else ("params", "velocity")
        wide = [aligned(layout.spread(state[name])) for name in names]
        rows = case.device_arrays()
        losses = np.full(len(rates), np.nan, dtype=np.float32)
        arrays = {
            "x": aligned(rows["x"]), "y": rows["y"], "order": order.astype(np.int32),
            "losses": losses,
            "rates": rates, "clock": np.array([0, step], dtype=np.int64), "params": wide[0],
            "first": wide[1], "second": wide[-1],
            "partial": aligned(np.zeros(self.plan.params * case.blocks, dtype=np.float32)),
            "weights": aligned(np.zeros(self.plan.params, dtype=np.float32)),
            "block_losses": np.zeros(case.blocks, dtype=np.float32),
            "counter": np.zeros(1, dtype=np.int32),
        }  # fmt: skip
        first, dropout = 0, self.plan.stack.dropout
        for n in launches or (len(rates),):
            argument = structs.Tiny(
                **{name: array.ctypes.data for name, array in arrays.items()},
                seed=case.recipe.seed, purpose=int(Purpose.DROPOUT), first_step=first, n_steps=n,
                rows=len(rows["x"]), networks=1, threshold=dropout.threshold, scale=dropout.scale,
                **scalars(case.recipe),
            )  # fmt: skip
            assert self._library.emulate(ctypes.byref(argument), seed, 1), "the kernel deadlocks"
            first += n
        for name, array in zip(names, wide, strict=True):
            state[name] = layout.compact(array)
        return losses


def scalars(recipe: TrainingRecipe) -> dict[str, float]:
    if isinstance(recipe.optimizer, SgdHyper):
        return {"momentum": recipe.optimizer.momentum, "beta2": 0.0, "eps": 0.0, "l2": recipe.l2}
    _, b1, b2, eps = recipe.optimizer.scalars(0.0, 1)
    return {"momentum": b1, "beta2": b2, "eps": eps, "l2": recipe.l2}


def aligned(array: Array) -> Array:
    """Return a copy whose address is a multiple of 64, as in GPU memory."""
    room = np.zeros(array.nbytes + 64, dtype=np.uint8)
    start = -room.ctypes.data % 64
    out = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    out[...] = array
    return out
