"""The persistent kernel on the GPU: equal to numpy, and bit for bit reproducible."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from pycuda_nn.cuda.layout import ParameterLayout
from pycuda_nn.cuda.persistent.kernel import PersistentKernel
from pycuda_nn.cuda.persistent.plan import KernelPlan
from pycuda_nn.cuda.persistent.recognise import recognise
from tests.pycuda_nn.cuda.persistent.persistent_cases import Case, check, check_float32, short

pytestmark = pytest.mark.gpu
Array = npt.NDArray[Any]
MOVED = ("params", "first", "second")
STATE = (*MOVED, "losses")
MNIST = (784, 512, 512, 10)
FOCAL = "-y * (1 - p)**2 * logp"
HUBER = "where(abs(z - y) < 1, 0.5 * (z - y)**2, abs(z - y) - 0.5)"
CASES = (
    Case(sizes=(33, 50, 7), batch=48, steps=16),
    Case(
        sizes=(33, 50, 7),
        batch=48,
        activation="tanh",
        precision="fp16",
        optimizer="nesterov",
        l2=0.01,
    ),
    Case(sizes=(64, 128, 10), batch=64, activation="sigmoid", l2=0.01, steps=16),
    Case(sizes=(64, 128, 10), batch=64, precision="fp16", steps=16),
    Case(sizes=(33, 50, 40, 30, 7), batch=48, activation="sigmoid", precision="fp16", l2=0.1),
    Case(sizes=(20, 40, 50, 30, 40, 20), batch=400, activation="tanh", optimizer="nesterov"),
    Case(sizes=(100, 200, 96, 64), batch=256, activation="tanh", precision="fp16", steps=16),
    Case(sizes=MNIST, batch=128, steps=16),
    Case(
        sizes=MNIST, batch=128, activation="tanh", precision="fp16", optimizer="nesterov", l2=0.001
    ),
    Case(sizes=(784, 640, 640, 10), batch=128, activation="tanh", precision="fp16"),
    Case(sizes=(784, 300, 300, 300, 10), batch=64, optimizer="adam", dropout=0.5, steps=16),
    Case(sizes=(784, 300, 300, 10), batch=100, activation="tanh", precision="fp16", dropout=0.2),
    Case(sizes=(32, 64, 1), batch=16, loss="squared", optimizer="adam", activation="tanh"),
    Case(sizes=(128, 256, 1), batch=1024, loss="logistic", optimizer="adam", l2=0.001),
    Case(sizes=(128, 256, 2), batch=1000, activation="elu", precision="fp16"),
    Case(sizes=(513, 777, 333, 7), batch=250, optimizer="adam", activation="softplus"),
    Case(sizes=(200, 300, 250, 9), batch=90, activation="silu", dropout=0.2, loss=FOCAL),
    Case(sizes=(784, 512, 512, 10), batch=128, activation="gelu", optimizer="adam"),
    Case(sizes=(50, 90, 20), batch=60, activation="cos(x)", loss=HUBER, precision="fp16"),
    Case(sizes=(50, 70, 33), batch=1, loss="squared", activation="selu", precision="fp16"),
    Case(sizes=(50, 70, 90, 33), batch=201, loss="squared", activation="leaky_relu", dropout=0.1),
    Case(sizes=(33, 50, 40, 7), batch=48, precision="float32", activation="tanh", l2=0.01),
    Case(sizes=MNIST, batch=128, precision="float32", optimizer="nesterov", activation="tanh"),
    Case(sizes=MNIST, batch=100, precision="float32", optimizer="adam", dropout=0.2),
    Case(
        sizes=(784, 300, 300, 300, 10),
        batch=64,
        precision="float32",
        activation="sigmoid",
        optimizer="adam",
        dropout=0.5,
        steps=16,
    ),
    Case(sizes=(513, 777, 333, 7), batch=250, precision="float32", activation="softplus"),
    Case(sizes=(128, 256, 1), batch=1024, precision="float32", loss="logistic", activation="tanh"),
    Case(sizes=(50, 90, 20), batch=60, precision="float32", activation="cos(x)", loss=HUBER),
    Case(sizes=(20, 40, 50, 30, 40, 64), batch=400, precision="float32", activation="tanh"),
    Case(sizes=(784, 300, 300, 10), batch=100, precision="tf32", optimizer="adam", dropout=0.2),
    Case(sizes=(513, 777, 333, 7), batch=250, precision="tf32", activation="tanh"),
    Case(sizes=(50, 70, 33), batch=1, precision="tf32", loss="squared", activation="selu"),
    Case(sizes=(200, 300, 250, 9), batch=90, precision="tf32", activation="silu", loss=FOCAL),
)


def trained(case: Case, *launches: int, plan: KernelPlan | None = None) -> list[dict[str, Array]]:
    """Return the states after ``launches``, numbers of steps, each run from the start.

    A negative last number means two launches: one of that many steps, one of the remaining steps.
    """
    import pycuda.driver as cuda

    from pycuda_nn.cuda.runtime.device import Device, Memory
    from pycuda_nn.cuda.step.streams import BatchSource

    device, layout, arrays = Device(), ParameterLayout(case.network), case.arrays()
    with device.active():
        memory, stream = Memory(device), cuda.Stream()
        chosen = plan or recognise(case.stack, case.recipe, case.precision, device.facts)
        assert isinstance(chosen, KernelPlan), chosen
        persistent = PersistentKernel(
            device, memory, chosen, case.stack, case.recipe, case.precision
        )
        given = {name: arrays[name] for name in ("y", "order", "rates", "clock")}
        given["x"] = case.padded_x(arrays["x"])
        start = {
            "params": layout.spread(arrays["params"]),
            "first": np.zeros(layout.n_params, dtype=np.float32),
            "second": np.zeros(layout.n_params, dtype=np.float32),
            "losses": np.full(case.steps, np.nan, dtype=np.float32),
        }
        at = {name: memory.allocate(a.nbytes, name) for name, a in (given | start).items()}
        source = BatchSource(**{name: at[name] for name in (*given, "losses")})
        for name, array in given.items():
            cuda.memcpy_htod(at[name], np.ascontiguousarray(array))
        states = []
        for steps in launches:
            for name, array in start.items():
                cuda.memcpy_htod(at[name], array)
            parts = [steps] if steps > 0 else [-steps, case.steps + steps]
            for first, n in zip((0, parts[0]), parts, strict=False):
                persistent.run(
                    stream, source, **{k: at[k] for k in MOVED}, first_step=first, n_steps=n
                )
            stream.synchronize()
            states.append({name: np.empty_like(array) for name, array in start.items()})
            for name in STATE:
                cuda.memcpy_dtoh(states[-1][name], at[name])
        persistent.close()
        memory.free()
    return states


@pytest.mark.parametrize("case", CASES, ids=short)
def test_trains_as_the_twin_and_the_same_each_time(case: Case) -> None:
    first, whole, again, split = trained(case, 1, case.steps, case.steps, -min(7, case.steps - 1))
    check(case, case.arrays(), first, whole)
    for name in STATE:
        np.testing.assert_array_equal(again[name], whole[name], name)
        np.testing.assert_array_equal(split[name], whole[name], name)


SMOOTH = [case for case in CASES if case.precision == "float32" and case.activation == "tanh"]


@pytest.mark.parametrize("case", SMOOTH, ids=short)
def test_float32_is_as_accurate_as_numpy(case: Case) -> None:
    (first,) = trained(case, 1)
    check_float32(case, case.arrays(), first)


@pytest.mark.parametrize(
    ("groups", "chunk"), [((1, 16), 128), ((2, 32), 64), ((4, 16), 128), ((8, 8), 32)]
)
def test_gives_the_same_however_it_is_shared(groups: tuple[int, int], chunk: int) -> None:
    case = Case(sizes=(200, 256, 128, 10), batch=128, activation="tanh", precision="fp16")
    plan = dataclasses.replace(case.divided(*groups), chunk=chunk)
    check(case, case.arrays(), *trained(case, 1, case.steps, plan=plan))
