"""Errors of the driver become errors of this package; PyCUDA is replaced by a fake."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from pycuda_nn.errors import DeviceError


class Refused(Exception):
    """Fake of ``pycuda.driver.Error``."""


class Context:
    def __init__(self) -> None:
        self.depth = 0

    def push(self) -> None:
        self.depth += 1

    def pop(self) -> None:
        self.depth -= 1


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    package, driver = ModuleType("pycuda"), ModuleType("pycuda.driver")
    driver.__dict__.update(Error=Refused, Context=Context)
    package.__dict__.update(driver=driver)
    monkeypatch.setitem(sys.modules, "pycuda", package)
    monkeypatch.setitem(sys.modules, "pycuda.driver", driver)
    monkeypatch.setitem(sys.modules, "pycuda_nn.cuda.runtime.device", ModuleType("put back later"))
    del sys.modules["pycuda_nn.cuda.runtime.device"]
    package_of_ours = importlib.import_module("pycuda_nn.cuda")
    monkeypatch.setattr(package_of_ours, "device", None, raising=False)
    yield importlib.import_module("pycuda_nn.cuda.runtime.device")
    sys.modules.pop("pycuda_nn.cuda.runtime.device", None)


def test_what_the_driver_refuses_is_said_in_its_words(module: Any) -> None:
    device = object.__new__(module.Device)
    device.ordinal, device._context = 1, Context()
    device.facts = module.Facts(
        name="H200", compute_capability=(9, 0), multiprocessors=132, shared_bytes=0, l2_bytes=0
    )
    with (
        pytest.raises(DeviceError, match=r"GPU 1, H200: cuCtxSynchronize failed: .*\n.*--resume"),
        device.active(),
    ):
        raise Refused("cuCtxSynchronize failed: an illegal memory access was encountered")
    with pytest.raises(ZeroDivisionError), device.active():
        raise ZeroDivisionError
    assert device._context.depth == 0
