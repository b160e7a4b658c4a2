"""The sessions of networks that one GPU trains at once, a batch for each shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.cuda.many.batch import Batch, Inputs
from pycuda_nn.cuda.many.plan import ManyPlan
from pycuda_nn.cuda.options import CudaOptions
from pycuda_nn.cuda.runtime.precision import PRECISIONS
from pycuda_nn.cuda.stack import DenseStack
from pycuda_nn.cuda.step.weights import optimizer_number
from pycuda_nn.errors import CheckpointError
from pycuda_nn.protocols import Metrics, Session, SessionGroup, Split, State, TrainingRecipe

Array = npt.NDArray[Any]
MOST = 128  # networks of a batch


class CudaGroup(SessionGroup):
    """Trains batch after batch."""

    def __init__(self, batches: Sequence[SharedBatch]) -> None:
        super().__init__(
            [place[1] for place in sorted(self._places(batches), key=lambda place: place[0])]
        )
        self._batches = list(batches)

    def run_epochs(self, inputs: Inputs) -> Iterator[tuple[int, npt.NDArray[np.float32]]]:
        """See :class:`SessionGroup`."""
        for batch in self._batches:
            wanted = [number for number in batch.numbers if number in inputs]
            if wanted:
                yield from zip(
                    wanted, batch.run([inputs.get(n) for n in batch.numbers]), strict=True
                )

    def close(self) -> None:
        """See :class:`SessionGroup`."""
        while self._batches:
            self._batches.pop().batch.close()

    @staticmethod
    def _places(batches: Sequence[SharedBatch]) -> list[tuple[int, Session]]:
        return [
            (number, Member(batch, place))
            for batch in batches
            for place, number in enumerate(batch.numbers)
        ]


class SharedBatch:
    """A batch, the numbers of its networks in the group, and its values since the last epoch."""

    def __init__(self, batch: Batch, numbers: Sequence[int]) -> None:
        self.batch, self.numbers = batch, list(numbers)
        self._kept: dict[str, Any] = {}
        self._loaded: dict[int, Mapping[str, Array]] = {}

    def run(self, inputs: Sequence[Any]) -> list[npt.NDArray[np.float32]]:
        """Train one epoch of the networks whose input is not None."""
        self._flush()
        self._kept.clear()
        wanted = {place: one for place, one in enumerate(inputs) if one is not None}
        losses = self.batch.run_epochs(wanted)
        return [losses[place] for place in wanted]

    def metrics(self, part: str) -> list[Metrics]:
        """Return the metrics of all networks."""
        self._flush()
        if part not in self._kept:
            self._kept[part] = self.batch.metrics(part)
        found: list[Metrics] = self._kept[part]
        return found

    def values(self, name: str) -> Any:
        """Return ``params`` or ``moments`` of all networks."""
        self._flush()
        if name not in self._kept:
            self._kept[name] = getattr(self.batch, name)()
        return self._kept[name]

    def load(self, place: int, state: Mapping[str, Array]) -> None:
        """Load the state of a network before the next use of the batch."""
        self._loaded[place] = state

    def _flush(self) -> None:
        if not self._loaded:
            return
        params, moments = self.batch.params(), self.batch.moments()
        for place, state in self._loaded.items():
            for name, values in {"params": params, **moments}.items():
                if name not in state or state[name].shape != values[place].shape:
                    raise CheckpointError(f"state '{name}' does not fit this network")
                values[place] = state[name]
            self.batch.steps[place] = int(state["step"])
        self._loaded.clear()
        self.batch.load(params, moments)


class Member(Session):
    """One network of a batch."""

    def __init__(self, shared: SharedBatch, place: int) -> None:
        self._shared, self._place = shared, place

    def run_epoch(self, order: Any, learning_rates: Array) -> npt.NDArray[np.float32]:
        """See :class:`Session`; the other networks of the batch stand still."""
        inputs: list[Any] = [None] * len(self._shared.numbers)
        inputs[self._place] = (order, learning_rates)
        return self._shared.run(inputs)[0]

    def evaluate(self, part: str) -> Metrics:
        """See :class:`Session`."""
        return self._shared.metrics(part)[self._place]

    def params(self) -> npt.NDArray[np.float32]:
        """See :class:`Session`."""
        found: npt.NDArray[np.float32] = self._shared.values("params")[self._place].copy()
        return found

    def state(self) -> State:
        """See :class:`Session`."""
        moments = self._shared.values("moments")
        mine = {name: values[self._place].copy() for name, values in moments.items()}
        step = np.array(self._shared.batch.steps[self._place], dtype=np.int64)
        return {"params": self.params(), "step": step, **mine}

    def load_state(self, state: Mapping[str, Array]) -> None:
        """See :class:`Session`."""
        self._shared.load(self._place, state)


def batches(stacks: Sequence[DenseStack], recipes: Sequence[TrainingRecipe]) -> list[list[int]]:
    """Return the numbers of the networks that can share a batch, in order."""
    groups: dict[Any, list[list[int]]] = {}
    for number, (stack, recipe) in enumerate(zip(stacks, recipes, strict=True)):
        loss = repr(stack.loss.description())
        key = (stack.sizes, stack.activation, loss, recipe.batch_size, optimizer_number(recipe))
        of_kind = groups.setdefault(key, [[]])
        if len(of_kind[-1]) == MOST:
            of_kind.append([])
        of_kind[-1].append(number)
    return [numbers for of_kind in groups.values() for numbers in of_kind]


def open_group(
    stacks: Sequence[DenseStack],
    recipes: Sequence[TrainingRecipe],
    options: CudaOptions,
    parts: Mapping[str, Split],
    params: Sequence[Array],
) -> CudaGroup:
    """Return a session for each network; the networks of a shape share their kernels."""
    made: list[SharedBatch] = []
    try:
        for numbers in batches(stacks, recipes):
            first = next((n for n in numbers if stacks[n].drops), numbers[0])
            plan = ManyPlan(
                stack=stacks[first],
                recipe=recipes[first],
                precision=PRECISIONS[options.precision],
                recipes=tuple(recipes[n] for n in numbers),
                dropouts=tuple(stacks[n].dropout for n in numbers),
            )
            batch = Batch(plan, options, parts, [params[n] for n in numbers])
            made.append(SharedBatch(batch, numbers))
    except BaseException:
        for shared in made:
            shared.batch.close()
        raise
    return CudaGroup(made)
