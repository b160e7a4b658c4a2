"""Several GPUs pass the contract of a backend, and train like one GPU."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

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
from pycuda_nn.cuda.parallel.hosts import meet
from pycuda_nn.errors import PycudaNNError
from pycuda_nn.network import Network
from pycuda_nn.protocols import Backend, Session, Split, TrainingRecipe
from pycuda_nn.rng import EpochOrder, epoch_order

pytestmark = pytest.mark.gpu(n=2)
Array = npt.NDArray[Any]


@pytest.fixture(autouse=True)
def no_timing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not time one GPU next to several: the tests are of small networks."""
    monkeypatch.setattr("pycuda_nn.cuda.parallel.choose._seconds_alone", lambda *_: 1.0)


class TestPeerContract(BackendContract):
    def backend(self) -> Backend:
        return CudaBackend(CudaOptions(gpus=2, exchange="peer"))


@pytest.mark.gpu(n=4)
class TestFourContract(BackendContract):
    def backend(self) -> Backend:
        return CudaBackend(CudaOptions(gpus=4, exchange="peer"))


class TestNcclContract(BackendContract):
    def backend(self) -> Backend:
        return CudaBackend(CudaOptions(gpus=2, exchange="nccl"))


class TestDeterministicContract(BackendContract):
    def backend(self) -> Backend:
        return CudaBackend(CudaOptions(gpus=2, deterministic=True))


class TestDealtContract(BackendContract):
    """Each GPU has room for its share of the rows only."""

    @pytest.fixture(autouse=True)
    def no_room(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pycuda_nn.cuda.parallel.session._RESERVE_BYTES", 0)
        monkeypatch.setattr("pycuda_nn.cuda.parallel.rank.RankSession.room", lambda _: 6000)

    def backend(self) -> Backend:
        return CudaBackend(CudaOptions(gpus=2, exchange="peer"))


class TestPinnedContract(BackendContract):
    """No GPU has room for rows."""

    @pytest.fixture(autouse=True)
    def no_room(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pycuda_nn.cuda.parallel.rank.RankSession.room", lambda _: 0)

    def backend(self) -> Backend:
        return CudaBackend(CudaOptions(gpus=2))


def _open(options: CudaOptions, network: Network, recipe: TrainingRecipe, parts: Any) -> Session:
    return CudaBackend(options).open(network, recipe, parts, network.initial_params(5))


def _rows(n: int, inputs: int, classes: int) -> dict[str, Split]:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((n, inputs), dtype=np.float32)
    y = (x @ rng.standard_normal((inputs, classes), dtype=np.float32)).argmax(1).astype(np.int32)
    return {"train": Split(x=x, y=y), "valid": Split(x=x[: n // 3], y=y[: n // 3])}


@pytest.mark.parametrize(("precision", "rtol"), [("tf32", 3e-3), ("fp16", 3e-3), ("bf16", 2e-2)])
@pytest.mark.parametrize("optimizer", [SGD, NESTEROV, ADAM], ids=["sgd", "nesterov", "adam"])
@pytest.mark.parametrize("loss", ["softmax", "squared", HUBER, FOCAL])
def test_fewer_bits_stay_near_float64(precision, rtol, optimizer, loss) -> None:
    recipe = sample_recipe(optimizer, l2=1e-3)
    network, parts = sample_network(loss, "tanh", 0.25), sample_parts(loss)
    got = _open(CudaOptions(precision=precision, gpus=2), network, recipe, parts)
    want = NumpyBackend(np.float64).open(network, recipe, parts, network.initial_params(5))
    rates = np.linspace(0.02, 0.01, 5)
    for epoch in range(2):
        order = epoch_order(70, 3, epoch)
        np.testing.assert_allclose(
            got.run_epoch(order, rates), want.run_epoch(order, rates), rtol=rtol, atol=rtol
        )
    assert got.replicas_are_equal()
    got.close()


@pytest.mark.parametrize("exchange", ["peer", "nccl"])
@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("gpus", [2, pytest.param(4, marks=pytest.mark.gpu(n=4))])
def test_losses_are_those_of_one_gpu(gpus: int, precision: str, exchange: str) -> None:
    network = Network.from_sizes((96, 512, 256, 10), activation="relu", loss="softmax")
    recipe, parts = (
        TrainingRecipe(optimizer=SGD, batch_size=250, l2=1e-4, seed=1),
        _rows(8111, 96, 10),
    )
    one = _open(CudaOptions(precision=precision), network, recipe, parts)
    options = CudaOptions(precision=precision, gpus=gpus, exchange=exchange, exact_gradients=True)
    several = _open(options, network, recipe, parts)
    order, rates = EpochOrder(n=8111, seed=1, epoch=0), np.full(33, 0.02)
    tolerance = 1e-4 if precision == "float32" else 5e-3
    np.testing.assert_allclose(
        several.run_epoch(order, rates), one.run_epoch(order, rates), rtol=tolerance
    )
    a, b = one.evaluate("valid"), several.evaluate("valid")
    np.testing.assert_allclose(a.loss, b.loss, rtol=10 * tolerance)
    assert several.replicas_are_equal()
    one.close()
    several.close()


def test_the_bits_are_the_same_each_time() -> None:
    network = Network.from_sizes((64, 128, 128, 10), activation="relu", loss="softmax")
    recipe, parts = (
        TrainingRecipe(optimizer=ADAM, batch_size=64, l2=0.0, seed=1),
        _rows(1000, 64, 10),
    )
    found = []
    for _ in range(3):
        session = _open(CudaOptions(precision="bf16", gpus=2), network, recipe, parts)
        for epoch in range(5):
            session.run_epoch(EpochOrder(n=1000, seed=1, epoch=epoch), np.full(16, 1e-3))
        found.append(session.params())
        session.close()
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("most", [2, pytest.param(4, marks=pytest.mark.gpu(n=4))])
def test_a_state_moves_between_numbers_of_gpus(most: int) -> None:
    network = Network.from_sizes((32, 64, 10), activation="relu", loss="softmax")
    recipe, parts = (
        TrainingRecipe(optimizer=ADAM, batch_size=48, l2=0.0, seed=1),
        _rows(500, 32, 10),
    )
    rates = np.full(11, 1e-3)
    want = NumpyBackend().open(network, recipe, parts, network.initial_params(5))
    backends = [
        CudaBackend(), CudaBackend(CudaOptions(gpus=most)), CudaBackend(CudaOptions(gpus=2)),
        CudaBackend(CudaOptions(gpus=2, exchange="nccl")), NumpyBackend(),
    ]  # fmt: skip
    state = None
    for epoch, backend in enumerate(backends):
        session = backend.open(network, recipe, parts, network.initial_params(5))
        if state is not None:
            session.load_state(state)
        order = EpochOrder(n=500, seed=1, epoch=epoch)
        np.testing.assert_allclose(
            session.run_epoch(order, rates), want.run_epoch(order, rates), rtol=2e-4
        )
        state = session.state()
        session.close()


@pytest.mark.parametrize("rows", [33, 34, 32])
def test_a_rest_of_fewer_rows_than_gpus(rows: int) -> None:
    network = Network.from_sizes((16, 32, 4), activation="tanh", loss="softmax")
    recipe, parts = TrainingRecipe(optimizer=SGD, batch_size=8, l2=0.0, seed=1), _rows(rows, 16, 4)
    steps = -(-rows // 8)
    two = _open(CudaOptions(gpus=2), network, recipe, parts)
    want = NumpyBackend().open(network, recipe, parts, network.initial_params(5))
    for epoch in range(3):
        order = EpochOrder(n=rows, seed=1, epoch=epoch)
        np.testing.assert_allclose(
            two.run_epoch(order, np.full(steps, 0.05)),
            want.run_epoch(order, np.full(steps, 0.05)), rtol=1e-4, atol=1e-6,
        )  # fmt: skip
    two.close()


def _long(gpus: int = 2) -> tuple[Session, Any, Any]:
    network = Network.from_sizes((256, 2048, 2048, 10), activation="relu", loss="softmax")
    recipe = TrainingRecipe(optimizer=SGD, batch_size=64, l2=0.0, seed=1)
    session = _open(
        CudaOptions(precision="bf16", gpus=gpus), network, recipe, _rows(1 << 18, 256, 10)
    )
    return session, EpochOrder(n=1 << 18, seed=1, epoch=0), np.full(1 << 12, 1e-3)


def test_a_rank_that_raises_ends_all_within_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    before = threading.active_count()
    session, order, rates = _long()
    session.run_epoch(order, rates)
    launch = type(session._made[0])._launch

    def failing(self: Any, queued: Any, stopped: Any) -> None:
        if self.rank == 1:
            launch(self, queued[: len(queued) // 3], stopped)
            raise RuntimeError("broken")
        launch(self, queued, stopped)

    monkeypatch.setattr(type(session._made[0]), "_launch", failing)
    began = time.monotonic()
    with pytest.raises(RuntimeError, match="broken"):
        session.run_epoch(order, rates)
    took = time.monotonic() - began
    session.close()
    assert took < 5  # most of it is the part of the epoch before
    assert threading.active_count() == before


def test_a_rank_that_stalls_ends_all_after_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pycuda_nn.cuda.parallel.session.LIMIT_S", 1.0)
    session, order, rates = _long()
    launch = type(session._made[0])._launch

    def stalling(self: Any, queued: Any, stopped: Any) -> None:
        if self.rank == 1:
            launch(self, queued[:3], stopped)
            while not stopped():
                time.sleep(0.01)
        else:
            launch(self, queued, stopped)

    monkeypatch.setattr(type(session._made[0]), "_launch", stalling)
    with pytest.raises(PycudaNNError, match=r"GPU 0 .*did not answer"):
        session.run_epoch(order, rates)
    session.close()


def test_nothing_stays_in_gpu_memory() -> None:
    import pycuda.driver as cuda

    from pycuda_nn.cuda.runtime.device import Device

    def free() -> list[int]:
        found = []
        for ordinal in range(2):
            device = Device(ordinal)
            with device.active():
                found.append(cuda.mem_get_info()[0])
        return found

    _long()[0].close()
    before = free()
    for _ in range(2):
        _long()[0].close()
    assert min(np.array(free()) - np.array(before)) > -(32 << 20)


@pytest.mark.gpu(n=4)
def test_a_checkpoint_moves_between_numbers_of_gpus(tmp_path: Path) -> None:
    """As 1, 4, 2 GPUs and numpy with the command, each for two more epochs."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((5000, 16), dtype=np.float32)
    np.savez(tmp_path / "rows.npz", x=x, y=(x @ rng.standard_normal((16, 4))).argmax(1))
    argv = [sys.executable, "-m", "pycuda_nn", "train", "--data", str(tmp_path / "rows.npz")]
    for setting in ("hidden=64", "batch_size=64", "optimizer=adam"):
        argv += ["--set", setting]

    def train(name: str, epochs: int, *more: str) -> None:
        command = [*argv, "--set", f"epochs={epochs}", "--checkpoint", str(tmp_path / name), *more]
        subprocess.run(command, check=True, capture_output=True)

    train("moved.npz", 2, "--backend", "cuda")
    for epochs, gpus in ((4, "4"), (6, "2")):
        train("moved.npz", epochs, "--backend", "cuda", "--gpus", gpus, "--resume")
    train("moved.npz", 8, "--backend", "numpy", "--resume")
    train("numpy.npz", 8, "--backend", "numpy")
    with np.load(tmp_path / "moved.npz") as got, np.load(tmp_path / "numpy.npz") as want:
        name = next(name for name in want.files if "params" in name)
        np.testing.assert_allclose(got[name], want[name], rtol=2e-2, atol=2e-3)


KILLS = int(os.environ.get("KILLS", "4"))


def _command(folder: Path, *more: str) -> list[str]:
    argv = [sys.executable, "-m", "pycuda_nn", "train", "--data", str(folder / "rows.npz")]
    argv += ["--backend", "cuda", "--precision", "bf16", "--gpus", "2"]
    for setting in (
        "hidden=512,512",
        "batch_size=256",
        "epochs=40",
        "optimizer=sgd",
        "dropout=0.1",
    ):
        argv += ["--set", setting]
    return [*argv, "--checkpoint", str(folder / "net.npz"), *more]


@pytest.mark.timeout(600)
def test_a_training_that_is_stopped_again_and_again_ends_with_the_same_bits(tmp_path: Path) -> None:
    """Ctrl-C, SIGTERM and SIGKILL at random instants; nothing of the process stays."""
    whole, often = tmp_path / "whole", tmp_path / "often"
    rng = np.random.default_rng(3)
    x = rng.standard_normal((120_000, 64), dtype=np.float32)
    y = (x[:, :8] @ rng.standard_normal((8, 5), dtype=np.float32)).argmax(1)
    for folder in (whole, often):
        folder.mkdir()
        np.savez(folder / "rows.npz", x=x, y=y)
    began = time.monotonic()
    subprocess.run(_command(whole), check=True, capture_output=True)
    took = time.monotonic() - began
    for number in range(KILLS):
        kind = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)[number % 3]
        process = subprocess.Popen(
            _command(often, "--resume"), stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        time.sleep(float(rng.uniform(0.3, 1.0)) * took)
        process.send_signal(kind)
        stopped = time.monotonic()
        _, said = process.communicate(timeout=60)
        assert time.monotonic() - stopped < 20, said
        assert process.returncode in (0, 130, -kind), said
        assert "Traceback" not in said
    subprocess.run(_command(often, "--resume"), check=True, capture_output=True)
    with np.load(whole / "net.npz") as want, np.load(often / "net.npz") as got:
        for name in want.files:
            if want[name].dtype.kind == "f":
                np.testing.assert_array_equal(got[name], want[name], err_msg=name)


def _host(folder: Path, meeting: Path, host: int, epochs: int) -> subprocess.Popen[str]:
    """Start the process of a "host" that has one GPU and reaches the other one by sockets only."""
    argv = [sys.executable, "-m", "pycuda_nn", "train", "--data", str(folder / "rows.npz")]
    argv += ["--backend", "cuda", "--hosts", "2", "--host", str(host), "--meet", str(meeting)]
    for setting in ("hidden=64", "batch_size=64", f"epochs={epochs}", "optimizer=sgd"):
        argv += ["--set", setting]
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "0,1").split(",")
    only = {"CUDA_VISIBLE_DEVICES": gpus[host], "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}
    return subprocess.Popen(
        [*argv, "--checkpoint", str(folder / f"net{host}.npz")],
        env={**os.environ, **only, "NCCL_SOCKET_IFNAME": "lo"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.fixture
def hosts_rows(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((5000, 16), dtype=np.float32)
    np.savez(tmp_path / "rows.npz", x=x, y=(x @ rng.standard_normal((16, 4))).argmax(1))
    return tmp_path


def test_two_processes_train_like_one(hosts_rows: Path) -> None:
    folder = hosts_rows / "meet"
    folder.mkdir(mode=0o700)
    processes = [_host(hosts_rows, folder, host, 3) for host in range(2)]
    said = [process.communicate(timeout=120)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    assert not (hosts_rows / "net1.npz").exists()  # host 0 writes the checkpoint
    argv = [sys.executable, "-m", "pycuda_nn", "train", "--data", str(hosts_rows / "rows.npz")]
    argv += ["--backend", "numpy", "--checkpoint", str(hosts_rows / "numpy.npz")]
    for setting in ("hidden=64", "batch_size=64", "epochs=3", "optimizer=sgd"):
        argv += ["--set", setting]
    subprocess.run(argv, check=True, capture_output=True)
    with np.load(hosts_rows / "net0.npz") as got, np.load(hosts_rows / "numpy.npz") as want:
        name = next(name for name in want.files if "params" in name)
        np.testing.assert_allclose(got[name], want[name], rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("lost", [0, 1])
def test_a_host_that_is_lost_ends_the_other_one(hosts_rows: Path, lost: int) -> None:
    folder = hosts_rows / "meet"
    folder.mkdir(mode=0o700)
    processes = [_host(hosts_rows, folder, host, 100_000) for host in range(2)]
    end = time.monotonic() + 60
    while not (hosts_rows / "net0.npz").exists() and time.monotonic() < end:
        time.sleep(0.1)
    processes[lost].kill()
    _, said = processes[1 - lost].communicate(timeout=60)
    processes[lost].communicate(timeout=60)
    assert processes[1 - lost].returncode == 1, said
    assert "another host was lost" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("seconds", [0.0, 8.0])
def test_a_host_that_is_lost_before_the_first_step_ends_the_other_one(
    hosts_rows: Path, seconds: float
) -> None:
    """Its GPU never comes to NCCL; the other one is then building its step, or waits in NCCL."""
    folder = hosts_rows / "meet"
    folder.mkdir(mode=0o700)
    process = _host(hosts_rows, folder, 0, 3)
    world = meet(CudaOptions(hosts=2, host=1, meet=str(folder)), 1, bytes)
    time.sleep(seconds)
    assert process.poll() is None
    assert world.presence is not None
    world.presence.leave(done=False)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1, said
    assert "the process of host 1 has ended" in said
    assert "Traceback" not in said
