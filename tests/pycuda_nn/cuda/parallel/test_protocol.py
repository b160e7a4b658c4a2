"""The flags, copies and events of a training on several GPUs, in random orders of all actions.

INTERLEAVINGS=1000000 tries a million orders instead of a few thousand.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pycuda_nn.backends.testing import SGD
from tests.pycuda_nn.cuda.parallel.fakes.drivers import faked_drivers

CASES: dict[str, dict[str, Any]] = {
    "2 ranks": {"size": 2, "graphs": (3, 1)},
    "2 ranks, relu, fused head": {
        "size": 2, "graphs": (1, 2, 2), "activation": "relu", "loss": "softmax",
    },
    "3 ranks": {"size": 3, "graphs": (2, 1)},
    "3 ranks, one of them without rows": {"size": 3, "graphs": (1, 2), "rows": 2},
    "3 ranks, large layers": {"size": 3, "graphs": (2, 1), "large": 1},
    "4 ranks, 1 layer": {"size": 4, "graphs": (3, 2), "widths": (16, 32)},
    "2 ranks, 6 layers": {"size": 2, "graphs": (2, 1), "widths": (16, 16, 16, 16, 16, 16, 16)},
}  # fmt: skip
_ORDERS = int(os.environ.get("INTERLEAVINGS", "3000")) // len(CASES) + 1


@pytest.fixture(scope="module")
def fault(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., str]]:
    """Return a function that returns the first fault of a case in some orders."""
    with faked_drivers():
        from tests.pycuda_nn.cuda.parallel.fakes import interleavings, protocol, step
        from tests.pycuda_nn.cuda.parallel.fakes.training import FakeTraining

        orders = interleavings.Interleavings(tmp_path_factory.mktemp("model"))

        def find(name: str, runs: int, skipped: tuple[str, ...] = (), **changed: Any) -> str:
            step.Step.skipped = skipped
            training = FakeTraining(step.Case(optimizer=SGD, **CASES[name]))
            step.Step.skipped = ()
            model = protocol.Model(training, protocol.Protocol(**changed))
            return orders.fault(model, runs)

        yield find


@pytest.mark.timeout(7200)  # a million orders
@pytest.mark.parametrize("name", CASES)
def test_no_order_has_a_fault(fault: Callable[..., str], name: str) -> None:
    assert fault(name, _ORDERS) == ""


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"waits": frozenset({"DONE"})}, "grad"),
        ({"waits": frozenset({"READY"})}, "W"),
        ({"copies": 1}, "W"),
    ],
    ids=["no READY", "no DONE", "one copy of the weights"],
)
@pytest.mark.parametrize("name", ["2 ranks", "2 ranks, relu, fused head", "3 ranks"])
def test_all_of_the_protocol_is_needed(
    fault: Callable[..., str], changed: Any, what: str, name: str
) -> None:
    assert f"('{what}'" in fault(name, 3000, **changed)


@pytest.mark.parametrize("event", ["updated", "gradient"])
def test_the_forward_pass_waits_for_each_event(fault: Callable[..., str], event: str) -> None:
    found = fault("2 ranks", 3000, skipped=(event,))
    assert {"updated": "('W'", "gradient": "('h'"}[event] in found


@pytest.mark.parametrize("large", [80 * 48, 80 * 48 + 1])
def test_the_backward_pass_waits_for_the_gradient_of_a_large_layer(large: int) -> None:
    """Its exchange then runs next to the products that follow."""
    with faked_drivers():
        from tests.pycuda_nn.cuda.parallel.fakes import step
        from tests.pycuda_nn.cuda.parallel.fakes.training import FakeTraining

        training = FakeTraining(step.Case(optimizer=SGD, size=2, graphs=(1,), large=large))
    waited = {}
    for one in training.operations:
        if one.name == "data_grad" and one.rank == 0:
            left, before = list(one.after), set()
            while left:
                earlier = left.pop()
                before.add((earlier.name, earlier.meaning[:1]))
                left += earlier.after
            waited[one.meaning[0]] = ("weight_grad", one.meaning[:1]) in before
    assert waited == {1: large == 80 * 48, 2: False}


def test_a_rank_that_ends_early_leaves_the_others_waiting(fault: Callable[..., str]) -> None:
    """The model finds a deadlock, which the limit of the kernels then ends."""
    with pytest.MonkeyPatch.context() as patch:
        from tests.pycuda_nn.cuda.parallel.fakes import protocol

        exchange = protocol.Model._exchange

        def ended(self: Any, one: Any, after: Any) -> Any:
            silent = one.rank == 1 and self._base[1] >= 3
            return self._add(one, "end", after) if silent else exchange(self, one, after)

        patch.setattr(protocol.Model, "_exchange", ended)
        assert "deadlock" in fault("2 ranks", 3)
