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
    """Trains all batches at the same time."""

    def __init__(self, batches: Sequence[SharedBatch]) -> None:
        super().__init__(
            [place[1] for place in sorted(self._places(batches), key=lambda place: place[0])]
        )
        self._batches = list(batches)

    def run_epochs(self, inputs: Inputs) -> Iterator[tuple[int, npt.NDArray[np.float32]]]:
        """See :class:`SessionGroup`."""
        begun: list[tuple[SharedBatch, list[int]]] = []
        for batch in self._batches:  # the GPU can run the steps of several shapes at the same time
            wanted = {
                place: inputs[number]
                for place, number in enumerate(batch.numbers)
                if number in inputs
            }
            if wanted:
                batch.begin(wanted)
                begun.append((batch, list(wanted)))
        for batch, places in begun:
            for place, losses in batch.end(places).items():
                yield batch.numbers[place], losses

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
    """A batch, the numbers of its networks in the group, and their moments after the last epoch."""

    def __init__(self, batch: Batch, numbers: Sequence[int]) -> None:
        self.batch, self.numbers = batch, list(numbers)
        self._moments: State = {}
        self._loaded: dict[int, Mapping[str, Array]] = {}

    def begin(self, inputs: Inputs) -> None:
        """Queue one epoch of the networks in ``inputs``, by place."""
        self._flush()
        self._moments.clear()
        self.batch.begin_epoch(inputs)

    def end(self, places: Sequence[int]) -> dict[int, npt.NDArray[np.float32]]:
        """Wait for the epoch of these networks; return the losses of each."""
        return self.batch.end_epoch(places)

    def metrics(self, part: str) -> list[Metrics]:
        """Return the metrics of all networks."""
        self._flush()
        return self.batch.metrics(part)

    def params(self, place: int) -> npt.NDArray[np.float32]:
        """Return the parameters of a network."""
        self._flush()
        return self.batch.params_of(place)

    def moments(self) -> State:
        """Return the moments of all networks, by name."""
        self._flush()
        if not self._moments:
            self._moments = self.batch.moments()
        return self._moments

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
        self._moments.clear()
        self.batch.load(params, moments)


class Member(Session):
    """One network of a batch."""

    def __init__(self, shared: SharedBatch, place: int) -> None:
        self._shared, self._place = shared, place

    def run_epoch(self, order: Any, learning_rates: Array) -> npt.NDArray[np.float32]:
        """See :class:`Session`; the other networks of the batch stand still."""
        self._shared.begin({self._place: (order, learning_rates)})
        return self._shared.end([self._place])[self._place]

    def evaluate(self, part: str) -> Metrics:
        """See :class:`Session`."""
        return self._shared.metrics(part)[self._place]

    def params(self) -> npt.NDArray[np.float32]:
        """See :class:`Session`."""
        return self._shared.params(self._place)

    def state(self) -> State:
        """See :class:`Session`."""
        moments = self._shared.moments()
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
