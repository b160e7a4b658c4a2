"""A GPU that falls off the bus is noticed; one that NVML does not show is not."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.pycuda_nn.cuda.parallel.fakes.drivers import faked_drivers
from tests.pycuda_nn.cuda.parallel.fakes.nvml import FakeNvml
from tests.waiting import until

BUSES = ["0000:02:00.0", "0000:03:00.0"]


@pytest.fixture
def watchdog(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with faked_drivers():
        from pycuda_nn.cuda.parallel import watchdog as module

        monkeypatch.setattr(module, "_PERIOD_S", 0.001)
        yield module
    until(lambda: not [one for one in threading.enumerate() if one.name == "watchdog"])


@pytest.fixture
def nvml(watchdog: Any, monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    fake = FakeNvml()
    monkeypatch.setattr(watchdog, "_open_nvml", lambda: fake)
    return fake


def test_a_lost_gpu_is_told_once(watchdog: Any, nvml: FakeNvml) -> None:
    told: list[int] = []
    dog = watchdog.Watchdog([2, 3], told.append)
    until(lambda: nvml.asked[:4] == BUSES * 2)
    assert told == []
    nvml.lost.add(BUSES[1])
    until(lambda: nvml.ended)
    assert told == [1]
    dog.close()


def test_a_gpu_that_must_not_be_asked_is_not_lost(watchdog: Any, nvml: FakeNvml) -> None:
    told: list[int] = []
    nvml.closed.add(BUSES[0])
    dog = watchdog.Watchdog([2, 3], told.append)
    until(lambda: len(nvml.asked) > 4)
    dog.close()
    until(lambda: nvml.ended)
    assert told == []


@pytest.mark.parametrize("broken", [True, False], ids=["no driver", "not installed"])
def test_without_nvml_nothing_is_watched(
    watchdog: Any, monkeypatch: pytest.MonkeyPatch, broken: bool
) -> None:
    class Broken(FakeNvml):
        def nvmlInit(self) -> None:  # noqa: N802
            raise self.NVMLError(9)

    monkeypatch.setitem(sys.modules, "pynvml", Broken() if broken else None)
    watchdog.Watchdog([0], pytest.fail).close()


def test_a_gpu_that_does_not_exist_is_the_error_of_its_rank(
    watchdog: Any, nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of ``--hosts 2 --gpus all --device 9``: the watchdog has no error of its own."""

    def missing(ordinal: int) -> None:
        raise watchdog.cuda.Error("cuDeviceGet failed: invalid device ordinal")

    monkeypatch.setattr(watchdog.cuda, "Device", missing)
    watchdog.Watchdog([9], pytest.fail).close()
    assert not nvml.asked
