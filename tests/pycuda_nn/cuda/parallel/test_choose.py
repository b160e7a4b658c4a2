"""How many GPUs a training uses, and what it says about their speed."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pycuda_nn.backends.testing import SGD
from pycuda_nn.errors import BackendUnavailable, ConfigError, DeviceError, OutOfDeviceMemory
from pycuda_nn.protocols import Split
from tests.pycuda_nn.cuda.parallel.fakes.drivers import faked_drivers
from tests.pycuda_nn.cuda.parallel.fakes.gpu import MACHINE, reset


class Trainings:
    """Opens sessions whose steps take given times, in units of those of one GPU."""

    def __init__(self, choose: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.choose = choose
        self.seconds: dict[int, float] = {}
        self.peers, self.timed_alone = True, 0
        self.log: list[tuple[str, int]] = []
        self.most_open = 0
        monkeypatch.setattr(choose, "CudaSession", self._single)
        monkeypatch.setattr(choose, "DataParallelSession", self._parallel)
        monkeypatch.setattr(choose, "all_can_access", lambda ordinals: self.peers)
        self.timed = choose._seconds_alone
        monkeypatch.setattr(choose, "_seconds_alone", self._alone)

    def open(self, *, gpus: int | str, there: int = 8, rows: int = 64, **more: Any) -> Any:
        from pycuda_nn.cuda.options import CudaOptions
        from tests.pycuda_nn.cuda.parallel.fakes.step import Case

        MACHINE.gpus = there
        plan = Case(size=2, optimizer=SGD, rows=32).plan
        parts = {"train": Split(x=np.zeros((rows, 4)), y=np.zeros(rows))}
        options = CudaOptions(gpus=gpus, **more)
        return self.choose.open_session(plan, options, parts, np.zeros(1))

    @property
    def open_sizes(self) -> list[int]:
        counts = Counter(size for what, size in self.log if what == "open")
        counts -= Counter(size for what, size in self.log if what == "close")
        return sorted(counts.elements())

    def _alone(self, *_: Any) -> float:
        self.timed_alone += 1
        return 1.0

    def _single(self, plan: Any, options: Any, parts: Any, params: Any) -> Any:
        assert options.gpus == 1
        self.log.append(("open", 1))
        return SimpleNamespace(size=1, device=options.device)

    def _parallel(self, *_: Any, ordinals: Any, exchange: str, **more: Any) -> Any:
        size = len(ordinals)
        self.log.append(("open", size))
        self.most_open = max(self.most_open, len(self.open_sizes))

        def step_times() -> Any:
            if size not in self.seconds:
                raise DeviceError("failed while it was timed")
            whole = self.seconds[size]
            return SimpleNamespace(whole=whole, computation=0.8 * whole, exchange=0.5, waiting=0.1)

        return SimpleNamespace(
            size=size, exchange=exchange, ordinals=list(ordinals), step_times=step_times,
            times=None, close=lambda: self.log.append(("close", size)),
        )  # fmt: skip


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> Iterator[Trainings]:
    with faked_drivers():
        from pycuda_nn.cuda.parallel import choose

        yield Trainings(choose, monkeypatch)
    reset()


def test_one_gpu_is_not_timed(trainings: Trainings) -> None:
    assert trainings.open(gpus=1).size == 1
    assert trainings.open(gpus="all", there=1).size == 1
    assert trainings.open(gpus="auto", there=1).size == 1
    assert trainings.timed_alone == 0


def test_all_gpus_from_the_first_one_on(trainings: Trainings) -> None:
    trainings.seconds = {3: 0.5, 6: 0.5, 16: 0.1}
    assert trainings.open(gpus="all", there=6).ordinals == [0, 1, 2, 3, 4, 5]
    assert trainings.open(gpus="all", there=5, device=2).ordinals == [2, 3, 4]
    assert trainings.open(gpus="all", there=99).size == 16  # as many as the kernels know
    assert trainings.open(gpus="all", there=6, rows=3).size == 3  # one row each


def test_a_device_that_does_not_exist_is_left_to_the_session(trainings: Trainings) -> None:
    assert trainings.open(gpus="all", there=2, device=5).device == 5


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"gpus": 5, "there": 4}, ["--gpus 5", "4 GPUs"]),
        ({"gpus": 2, "there": 4, "device": 3}, ["--gpus 2", "4 GPUs", "--device 3"]),
    ],
    ids=str,
)
def test_fewer_gpus_than_asked_for(
    trainings: Trainings, more: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(BackendUnavailable) as caught:
        trainings.open(**more)
    for word in words:
        assert word in caught.value.what
    assert "CUDA_VISIBLE_DEVICES" in caught.value.fix
    assert trainings.log == []


def test_a_minibatch_of_fewer_rows_than_gpus(trainings: Trainings) -> None:
    with pytest.raises(ConfigError, match=r"--gpus 4.*3 rows") as caught:
        trainings.open(gpus=4, rows=3)
    assert "batch_size" in caught.value.fix


@pytest.mark.parametrize(
    ("exchange", "peers", "used"),
    [("auto", True, "peer"), ("auto", False, "nccl"), ("nccl", True, "nccl")],
)
def test_the_exchange_depends_on_the_access(
    trainings: Trainings, exchange: str, peers: bool, used: str
) -> None:
    trainings.seconds, trainings.peers = {2: 0.6}, peers
    assert trainings.open(gpus=2, exchange=exchange).exchange == used


def test_both_times_are_logged(trainings: Trainings, caplog: pytest.LogCaptureFixture) -> None:
    trainings.seconds = {4: 0.3125}
    with caplog.at_level(logging.INFO, "pycuda_nn"):
        session = trainings.open(gpus=4)
    assert "3.20 times one GPU" in caplog.text
    assert "efficiency 80 %" in caplog.text
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert (session.alone, session.times.whole) == (1.0, 0.3125)


def test_gpus_that_are_slower_than_one_are_used_with_a_warning(
    trainings: Trainings, caplog: pytest.LogCaptureFixture
) -> None:
    trainings.seconds = {2: 1.5}
    assert trainings.open(gpus=2).size == 2
    (warning,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert "--gpus auto" in warning.getMessage()


@pytest.mark.parametrize(
    ("seconds", "best", "opened"),
    [
        ({2: 0.6, 4: 0.4, 8: 0.3}, 8, [2, 4, 8]),
        ({2: 0.6, 4: 0.4, 8: 0.5}, 4, [2, 4, 8]),
        ({2: 0.6, 4: 0.7}, 2, [2, 4]),
        ({2: 1.1}, 1, [2]),
    ],
    ids=str,
)
def test_auto_takes_the_fastest(
    trainings: Trainings,
    caplog: pytest.LogCaptureFixture,
    seconds: dict[int, float],
    best: int,
    opened: list[int],
) -> None:
    trainings.seconds = seconds
    assert trainings.open(gpus="auto").size == best
    assert trainings.open_sizes == [best]
    sizes = [size for what, size in trainings.log if what == "open" and size > 1]
    assert list(dict.fromkeys(sizes)) == opened
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_auto_does_not_depend_on_times_if_the_bits_must_not(
    trainings: Trainings, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="pycuda_nn")
    for seconds in ({2: 0.6, 4: 0.4}, {2: 0.4, 4: 1.6}):
        trainings.seconds = seconds
        assert trainings.open(gpus="auto", there=4, deterministic=True).size == 4
    assert {size for what, size in trainings.log if what == "open"} == {4}
    assert "--gpus auto with --deterministic: all 4 GPUs" in caplog.text
    (warning,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert "--gpus 1" in warning.getMessage()
    assert "--gpus auto" not in warning.getMessage()


def test_auto_also_tries_all_gpus_of_an_odd_number(trainings: Trainings) -> None:
    trainings.seconds = {2: 0.6, 4: 0.5, 6: 0.4}
    assert trainings.open(gpus="auto", there=6).size == 6


def test_auto_holds_the_memory_of_one_training_at_a_time(trainings: Trainings) -> None:
    trainings.seconds = {2: 0.6, 4: 0.4, 8: 0.3}
    trainings.open(gpus="auto")
    assert trainings.most_open == 1


def test_a_time_without_tuned_products_is_kept_apart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYCUDA_NN_CACHE", str(tmp_path))
    with faked_drivers():
        from pycuda_nn.cuda.options import CudaOptions
        from pycuda_nn.cuda.parallel import choose
        from tests.pycuda_nn.cuda.parallel.fakes.step import Case

        times = iter([2.0, 1.0])
        monkeypatch.setattr(choose, "_timed_alone", lambda *_: next(times))
        plan = Case(size=2, optimizer=SGD, rows=32).plan
        parts = {"train": Split(x=np.zeros((64, 4)), y=np.zeros(64))}
        kinds = [CudaOptions(gpus=2, deterministic=kind) for kind in (True, False, True)]
        found = [choose._seconds_alone(plan, kind, parts, np.zeros(1)) for kind in kinds]
    reset()
    assert found == [2.0, 1.0, 2.0]


def test_a_host_without_nccl_does_not_let_others_wait(
    trainings: Trainings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pycuda_nn.cuda.parallel.hosts._LIMIT_S", 0.0)
    tmp_path.chmod(0o700)
    for host in range(2):
        with pytest.raises(DeviceError, match=r"NCCL, which cannot be loaded.*nccl\.core"):
            trainings.open(gpus=1, hosts=2, host=host, meet=str(tmp_path))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("gpus", [4, "auto"])
def test_a_failure_while_timing_closes_everything(trainings: Trainings, gpus: int | str) -> None:
    trainings.seconds = {2: 0.6}
    with pytest.raises(DeviceError, match="while it was timed"):
        trainings.open(gpus=gpus)
    assert trainings.open_sizes == []


def test_one_gpu_without_enough_memory_is_no_obstacle(
    trainings: Trainings,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    def full(*_: Any) -> float:
        raise OutOfDeviceMemory("the parameters", 1 << 40, 1 << 30, limited=False)

    monkeypatch.setenv("PYCUDA_NN_CACHE", str(tmp_path))
    monkeypatch.setattr(trainings.choose, "_seconds_alone", trainings.timed)
    monkeypatch.setattr(trainings.choose, "_timed_alone", full)
    caplog.set_level(logging.INFO, logger="pycuda_nn")
    trainings.seconds = {2: 0.5}
    for gpus in (2, "auto"):
        assert trainings.open(gpus=gpus, there=2).size == 2
    assert all("one GPU has not enough memory" in line for line in caplog.messages)
    assert not list(tmp_path.iterdir())  # the memory can be free next time
