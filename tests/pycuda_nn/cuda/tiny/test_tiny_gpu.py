"""The tiny kernel on a GPU trains like numpy, and the same each time."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
import pytest

from pycuda_nn.backends.numpy.session import NumpyBackend
from pycuda_nn.backends.testing import ADAM, FOCAL, HUBER, NESTEROV, SGD
from pycuda_nn.cuda.layout import ParameterLayout
from pycuda_nn.cuda.tiny.kernel import TinyKernel
from tests.pycuda_nn.cuda.tiny.emulation import Case, factors

pytestmark = pytest.mark.gpu

CASES = (
    Case(sizes=(32, 64, 1), batch=16, optimizer=ADAM, loss="squared", l2=1e-2, threads=512),
    Case(sizes=(33, 50, 40, 7), batch=50, optimizer=SGD, activation="tanh", dropout=0.25),
    Case(sizes=(13, 20, 1), batch=100, optimizer=NESTEROV, loss="logistic", activation="sigmoid"),
    Case(sizes=(20, 33, 17, 3), batch=25, optimizer=ADAM, loss=FOCAL, activation="gelu"),
    Case(sizes=(60, 17, 9, 2), batch=190, optimizer=NESTEROV, loss=HUBER, dropout=0.25, l2=1e-2),
    Case(sizes=(64, 128, 10), batch=64, optimizer=ADAM, dropout=0.5, l2=1e-2),
    Case(sizes=(9, 12, 40), batch=8, optimizer=SGD, precision="bf16"),
)
BLOCKS = (1, 2, 5, 8, 16, 32)


def trained(case: Case, n_rows: int, order, rates, *launches: int) -> dict[str, npt.NDArray]:
    """Return the state after one epoch, in launches of these numbers of steps."""
    import pycuda.driver as cuda

    from pycuda_nn.cuda.runtime.device import Device, Memory
    from pycuda_nn.cuda.step.streams import BatchSource

    device, layout, arrays = Device(), ParameterLayout(case.network), case.device_arrays()
    params = layout.spread(case.network.initial_params(5))
    arrays |= {
        "order": order.astype(np.int32),
        "rates": rates,
        "losses": np.full(len(rates), np.nan, dtype=np.float32),
        "clock": np.array([0, 40], dtype=np.int64),
        "params": params,
        "first": np.zeros_like(params),
        "second": np.zeros_like(params),
    }
    with device.active():
        memory, stream = Memory(device), cuda.Stream()
        at = {name: memory.allocate(array.nbytes, name) for name, array in arrays.items()}
        for name, array in arrays.items():
            cuda.memcpy_htod(at[name], np.ascontiguousarray(array))
        kernel = TinyKernel(device, memory, case.plan, case.recipe)
        source = BatchSource(**{k: at[k] for k in ("x", "y", "order", "rates", "losses", "clock")})
        state = {name: at[name] for name in ("params", "first", "second")}
        done = 0
        for steps in launches:
            kernel.run(stream, source, **state, rows=n_rows, first_step=done, n_steps=steps)
            done += steps
        stream.synchronize()
        names = (*state, "losses")
        for name in names:
            cuda.memcpy_dtoh(arrays[name], at[name])
        kernel.close()
        memory.free()
    return {name: arrays[name] for name in names}


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("blocks", BLOCKS)
def test_trains_like_numpy_and_the_same_each_time(case: Case, blocks: int) -> None:
    cluster = 1 < blocks <= 8
    case = dataclasses.replace(case, blocks=blocks, threads=max(256, case.threads), cluster=cluster)
    if case.batch < blocks or case.plan.shared_bytes > 220_000:
        pytest.skip("there is no such plan")
    part = case.part()
    exact = NumpyBackend(np.float64).open(
        case.network, case.recipe, {"train": part}, case.network.initial_params(5)
    )
    exact.load_state({**exact.state(), "step": np.array(40)})
    steps = -(-len(part.x) // case.batch)
    rates = np.linspace(0.02, 0.01, steps).astype(np.float32)
    order = np.random.default_rng(2).permutation(len(part.x))
    scaled = factors(case, rates, 40)
    got = trained(case, len(part.x), order, scaled, steps)
    again = trained(case, len(part.x), order, scaled, 1, steps - 1)
    for name, array in got.items():
        np.testing.assert_array_equal(again[name], array, name)
    np.testing.assert_allclose(got["losses"], exact.run_epoch(order, rates), rtol=1e-4)
    want = ParameterLayout(case.network).spread(exact.state()["params"])
    np.testing.assert_allclose(got["params"], want, rtol=2e-3, atol=2e-5)
