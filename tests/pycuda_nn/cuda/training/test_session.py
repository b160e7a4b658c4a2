"""The CUDA backend passes the contract, and trains like numpy."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import pycuda_nn as nn
from pycuda_nn.backends.numpy.session import NumpyBackend
from pycuda_nn.backends.testing import (
    ADAM,
    FOCAL,
    HUBER,
    NESTEROV,
    SGD,
    BackendContract,
    sample_network,
    sample_parts,
    sample_recipe,
)  # fmt: skip
from pycuda_nn.cuda.backend import CudaBackend
from pycuda_nn.cuda.options import CudaOptions
from pycuda_nn.cuda.training.choice import Paths
from pycuda_nn.network import Network
from pycuda_nn.protocols import Backend, SgdHyper, Split, TrainingRecipe
from pycuda_nn.rng import EpochOrder, epoch_order

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def no_tiny_kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test the captured step, unless a test asks for the tiny kernel or for the fastest path."""
    if request.node.get_closest_marker("usefixtures") is None:
        monkeypatch.setattr(Paths, "add_tiny", lambda *_, **__: None)


@pytest.fixture
def fastest_path() -> None:
    """Choose by time."""


@pytest.fixture
def tiny_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Choose the tiny kernel, which is the last path."""
    monkeypatch.setattr(Paths, "_timed", lambda self: self._first(reversed(self._makers)))


@pytest.fixture(scope="module")
def its_own_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache without choices of other tests."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def built_in_products(monkeypatch: pytest.MonkeyPatch, its_own_cache: Path) -> None:
    """Choose a built-in kernel for every product, with what follows it."""
    from pycuda_nn.cuda.gemm import matmul, sgemm
    from pycuda_nn.cuda.runtime.device import Device

    if Device().facts.compute_capability < (9, 0):
        pytest.skip("clusters need compute capability 9.0")
    kinds = itertools.cycle(([2], [6], [11], [8]))  # split in 4, 4, 6, and not
    monkeypatch.setenv("PYCUDA_NN_CACHE", str(its_own_cache))
    monkeypatch.setattr(Paths, "add_tiny", lambda *_, **__: None)
    monkeypatch.setattr(sgemm, "worth_a_try", lambda *_: next(kinds))
    monkeypatch.setattr(matmul, "_best", lambda ranked: [one for one in ranked if is_own(one)])


def is_own(algorithm: bytes) -> bool:
    from pycuda_nn.cuda.gemm.matmul import _own_place

    return _own_place(np.frombuffer(algorithm, np.uint64)) > 0


class TestContract(BackendContract):
    def backend(self) -> Backend:
        return CudaBackend()


@pytest.mark.usefixtures("fastest_path")
class TestFastestContract(BackendContract):
    def backend(self) -> Backend:
        return CudaBackend()


@pytest.mark.usefixtures("built_in_products")
class TestBuiltInContract(BackendContract):
    """Activation, slope and update follow the products in the same kernels."""

    def backend(self) -> Backend:
        return CudaBackend()


@pytest.mark.usefixtures("built_in_products")
def test_built_in_products_of_shapes_of_one_network() -> None:
    """Many networks at once, but no other one of the same shape."""
    part = sample_parts("softmax")["train"]
    data = nn.Dataset.from_arrays(part.x, part.y, task="classify")
    configs = [
        nn.TrainConfig(hidden=hidden, epochs=3, batch_size=16, dropout=0.25, l2=1e-3, seed=3)
        for hidden in ((9, 7), (12,))
    ]
    found = nn.train_many(configs, data, backend=CudaBackend())
    for config, result in zip(configs, found, strict=True):
        assert isinstance(result, nn.TrainResult)
        want = nn.train(config, data, backend="numpy")
        np.testing.assert_allclose(
            [report.train_loss for report in result.history],
            [report.train_loss for report in want.history],
            rtol=1e-4,
        )


@pytest.mark.usefixtures("tiny_kernel")
class TestTinyContract(BackendContract):
    def backend(self) -> Backend:
        return CudaBackend()


@pytest.mark.usefixtures("tiny_kernel")
@pytest.mark.parametrize("precision", ["tf32", "fp16", "bf16"])
@pytest.mark.parametrize("optimizer", [SGD, ADAM], ids=["sgd", "adam"])
def test_the_tiny_kernel_rounds_only_the_rows(
    precision: str, optimizer: SgdHyper, caplog: pytest.LogCaptureFixture
) -> None:
    """In fewer bits too, weights, products and sums are float32."""
    network, parts = sample_network("softmax", "tanh"), sample_parts("softmax")
    rounded = {
        name: _part(part.x.astype(np.float16).astype(np.float32), part.y)
        for name, part in parts.items()
    }
    if precision == "bf16":
        rounded = {
            name: _part((part.x.view(np.uint32) & 0xFFFF0000).view(np.float32), part.y)
            for name, part in parts.items()
        }
    params, recipe = network.initial_params(5), sample_recipe(optimizer)
    caplog.set_level("INFO", logger="pycuda_nn")
    backend = CudaBackend(CudaOptions(precision=precision))
    got = backend.open(network, recipe, rounded, params)
    want = NumpyBackend(np.float64).open(network, recipe, rounded, params)
    rates = np.linspace(0.02, 0.01, 5)
    for epoch in range(2):
        order = epoch_order(70, 3, epoch)
        np.testing.assert_allclose(
            got.run_epoch(order, rates), want.run_epoch(order, rates), rtol=1e-4
        )
    assert "training path: tiny kernel" in caplog.text
    got.close()


@pytest.mark.usefixtures("fastest_path")
class TestFastestDeterministicContract(BackendContract):
    def backend(self) -> Backend:
        return CudaBackend(CudaOptions(deterministic=True))


class TestDeterministicContract(BackendContract):
    def backend(self) -> Backend:
        return CudaBackend(CudaOptions(deterministic=True))


class TestStreamedContract(BackendContract):
    """Rows in pinned host memory, as if the GPU had not enough memory for them."""

    @pytest.fixture(autouse=True)
    def no_room(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pycuda_nn.cuda.training.rows._RESERVE_BYTES", 1 << 60)

    def backend(self) -> Backend:
        return CudaBackend()


@pytest.mark.usefixtures("tiny_kernel")
class TestTinyStreamedContract(TestStreamedContract):
    """The same, in the tiny kernel."""


@pytest.mark.parametrize(("precision", "rtol"), [("tf32", 3e-3), ("fp16", 3e-3), ("bf16", 2e-2)])
@pytest.mark.parametrize("optimizer", [SGD, NESTEROV, ADAM], ids=["sgd", "nesterov", "adam"])
@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid", "silu"])
@pytest.mark.parametrize("loss", ["softmax", "logistic", "squared", HUBER, FOCAL])
def test_fewer_bits_stay_near_float64(precision, rtol, optimizer, activation, loss) -> None:
    recipe = sample_recipe(optimizer, l2=1e-3)
    dropout = 0.25 if activation in ("tanh", "silu") else 0.0
    network, parts = sample_network(loss, activation, dropout), sample_parts(loss)
    params = network.initial_params(5)
    got = CudaBackend(CudaOptions(precision=precision)).open(network, recipe, parts, params)
    want = NumpyBackend(np.float64).open(network, recipe, parts, params)
    rates = np.linspace(0.02, 0.01, 5)
    for epoch in range(2):
        order = epoch_order(70, 3, epoch)
        np.testing.assert_allclose(
            got.run_epoch(order, rates), want.run_epoch(order, rates), rtol=rtol, atol=rtol
        )
    got.close()


@pytest.mark.parametrize("dropout", [0.0, 0.25])
def test_the_slope_of_columns_of_padding_does_not_count(dropout: float) -> None:
    """The slope of the activation at 0 is infinite, and no output of a layer is 0."""
    network = sample_network("squared", "sqrt(abs(x))", dropout)
    parts, params = sample_parts("squared"), network.initial_params(5)
    recipe, rates = sample_recipe(SGD), np.full(5, 1e-3)
    got = CudaBackend().open(network, recipe, parts, params)
    want = NumpyBackend(np.float64).open(network, recipe, parts, params)
    for epoch in range(2):
        order = epoch_order(70, 3, epoch)
        np.testing.assert_allclose(
            got.run_epoch(order, rates), want.run_epoch(order, rates), rtol=1e-3
        )
    got.close()


# A relu that is on in one precision and off in another changes a whole row of the gradient: the
# tight limits are for a smooth activation.
_LIMIT = {
    "tanh": {"float32": 1e-5, "tf32": 2e-3, "fp16": 2e-3, "bf16": 2e-2},
    "gelu": {"float32": 1e-5, "tf32": 2e-3, "fp16": 2e-3, "bf16": 2e-2},
    "relu": {"float32": 1e-3, "tf32": 6e-2, "fp16": 6e-2, "bf16": 1e-1},
}


@pytest.mark.parametrize("activation", ["relu", "tanh", "gelu"])
@pytest.mark.parametrize("precision", ["float32", "tf32", "fp16", "bf16"])
@pytest.mark.parametrize(
    ("sizes", "batch"),
    [((784, 512, 512, 10), 128), ((33, 50, 7), 48), ((512, 2048, 512, 10), 256), ((20, 30), 10)],
    ids=str,
)
def test_gradient_of_every_layer(
    precision: str, sizes: tuple[int, ...], batch: int, activation: str
) -> None:
    rng = np.random.default_rng(1)
    n = 2 * batch + 5
    network = Network.from_sizes(sizes=sizes, activation=activation, loss="softmax")
    x = rng.normal(size=(n, sizes[0])).astype(np.float32)
    y = rng.integers(0, sizes[-1], n).astype(np.int32)
    parts = {"train": _part(x, y)}
    recipe = TrainingRecipe(
        optimizer=SgdHyper(momentum=0.9, nesterov=False),
        batch_size=batch,
        l2=0.0,
        seed=0,
    )
    params = network.initial_params(1)
    session = CudaBackend(CudaOptions(precision=precision)).open(network, recipe, parts, params)
    exact = NumpyBackend(np.float64).open(network, recipe, parts, params)
    order = rng.permutation(n)
    for part in (session, exact):  # only one step has a rate above 0
        part.run_epoch(order, np.zeros(3))
    got, want = session.state()["velocity"], exact.state()["velocity"]
    limit = _LIMIT[activation][precision]
    for (w, b), (exact_w, exact_b) in zip(network.views(got), network.views(want), strict=True):
        for mine, right in ((w, exact_w), (b, exact_b)):
            assert np.linalg.norm(mine - right) < limit * np.linalg.norm(right)
    session.close()


def test_the_order_drawn_on_the_device_is_that_of_the_host() -> None:
    for n in (1, 2, 3, 5, 70, 2047, 2048, 2049, 5000, 100_003, 1_500_001):
        network = Network.from_sizes(sizes=(1, 1), activation="relu", loss="squared")
        x = np.arange(n, dtype=np.float32)[:, None]
        recipe = TrainingRecipe(optimizer=SGD, batch_size=max(1, n // 50), l2=0.0, seed=7)
        parts = {"train": _part(x, x)}
        session = CudaBackend().open(network, recipe, parts, network.initial_params(1))
        steps = -(-n // recipe.batch_size)
        for epoch in (0, 3):
            order = EpochOrder(n=n, seed=7, epoch=epoch)
            got = session.run_epoch(order, np.zeros(steps))
            want = session.run_epoch(np.asarray(order), np.zeros(steps))
            np.testing.assert_array_equal(got, want)
        session.close()


def _part(x: np.ndarray, y: np.ndarray) -> Split:
    return Split(x=x, y=y)
