"""The persistent kernel on the GPU: equal to numpy, and bit for bit reproducible."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from pycuda_nn.cuda.layout import ParameterLayout
from pycuda_nn.cuda.persistent.kernel import PersistentKernel
from pycuda_nn.cuda.persistent.plan import KernelPlan, partition
from pycuda_nn.cuda.persistent.recognise import recognise
from tests.pycuda_nn.cuda.persistent.persistent_cases import Case, check

pytestmark = pytest.mark.gpu
Array = npt.NDArray[Any]
STATE = ("params", "velocity", "losses")
MNIST = (784, 512, 512, 10)
CASES = (
    Case(sizes=(33, 50, 7), batch=48, steps=16),
    Case(sizes=(33, 50, 7), batch=48, activation="tanh", precision="fp16", nesterov=True, l2=0.01),
    Case(sizes=(64, 128, 10), batch=64, activation="sigmoid", l2=0.01, steps=16),
    Case(sizes=(64, 128, 10), batch=64, precision="fp16", steps=16),
    Case(sizes=(33, 50, 40, 30, 7), batch=48, activation="sigmoid", precision="fp16", l2=0.1),
    Case(sizes=(20, 40, 50, 30, 40, 20), batch=400, activation="tanh", nesterov=True),
    Case(sizes=(100, 200, 96, 64), batch=256, activation="tanh", precision="fp16", steps=16),
    Case(sizes=MNIST, batch=128, steps=16),
    Case(sizes=MNIST, batch=128, activation="tanh", precision="fp16", nesterov=True, l2=0.001),
    Case(sizes=(784, 640, 640, 10), batch=128, activation="tanh", precision="fp16"),
)


def trained(case: Case, *launches: int, plan: KernelPlan | None = None) -> list[dict[str, Array]]:
    """Return the states after ``launches``, numbers of steps, each run from the start.

    A negative last number means two launches: one of that many steps, one of the remaining steps.
    """
    import pycuda.driver as cuda

    from pycuda_nn.cuda.runtime.device import Device, Memory

    device, layout, arrays = Device(), ParameterLayout(case.network), case.arrays()
    with device.active():
        memory, stream = Memory(device), cuda.Stream()
        chosen = plan or recognise(case.stack, case.recipe, case.precision, device.facts)
        assert isinstance(chosen, KernelPlan), chosen
        persistent = PersistentKernel(
            device, memory, chosen, case.stack, case.recipe, case.precision
        )
        given = {name: arrays[name] for name in ("y", "order", "rates")}
        given["x"] = case.padded_x(arrays["x"])
        start = {
            "params": layout.spread(arrays["params"]),
            "velocity": np.zeros(layout.n_params, dtype=np.float32),
            "losses": np.full(case.steps, np.nan, dtype=np.float32),
        }
        at = {name: memory.allocate(a.nbytes, name) for name, a in (given | start).items()}
        for name, array in given.items():
            cuda.memcpy_htod(at[name], np.ascontiguousarray(array))
        states = []
        for steps in launches:
            for name, array in start.items():
                cuda.memcpy_htod(at[name], array)
            parts = [steps] if steps > 0 else [-steps, case.steps + steps]
            for first, n in zip((0, parts[0]), parts, strict=False):
                persistent.run(stream, **at, first_step=first, n_steps=n)
            stream.synchronize()
            states.append({name: np.empty_like(array) for name, array in start.items()})
            for name in STATE:
                cuda.memcpy_dtoh(states[-1][name], at[name])
        persistent.close()
        memory.free()
    return states


@pytest.mark.parametrize("case", CASES, ids=str)
def test_trains_as_the_twin_and_the_same_each_time(case: Case) -> None:
    first, whole, again, split = trained(case, 1, case.steps, case.steps, -min(7, case.steps - 1))
    check(case, case.arrays(), first, whole)
    for name in STATE:
        np.testing.assert_array_equal(again[name], whole[name], name)
        np.testing.assert_array_equal(split[name], whole[name], name)


@pytest.mark.parametrize("groups", [(1, 16), (2, 32), (4, 16), (8, 8)])
def test_gives_the_same_however_it_is_shared(groups: tuple[int, int]) -> None:
    case = Case(sizes=(200, 256, 128, 10), batch=128, activation="tanh", precision="fp16")
    plan = partition(case.stack, case.batch, *groups)
    assert plan is not None
    check(case, case.arrays(), *trained(case, 1, case.steps, plan=plan))
