from __future__ import annotations

import pytest

from pycuda_nn.backends import BACKENDS, pick
from pycuda_nn.backends.base import Backend
from pycuda_nn.backends.numpy_backend import NumpyBackend
from pycuda_nn.backends.testing import BackendContract
from pycuda_nn.errors import BackendUnavailable


class TestNumpy(BackendContract):
    def backend(self) -> Backend:
        return NumpyBackend()


def test_auto_takes_the_first_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(NumpyBackend):
        @classmethod
        def missing(cls) -> str | None:
            return "no device"

    monkeypatch.setitem(BACKENDS, "numpy", NumpyBackend)
    reordered = {"broken": Broken, **BACKENDS}
    monkeypatch.setattr("pycuda_nn.backends.BACKENDS", reordered)
    assert type(pick("auto")) is NumpyBackend
    with pytest.raises(BackendUnavailable, match="'broken' cannot be used here: no device"):
        pick("broken")


def test_cuda_is_one_clear_line() -> None:
    with pytest.raises(BackendUnavailable) as caught:
        pick("cuda")
    assert str(caught.value) == (
        "backend 'cuda' is not available in this version; use --backend numpy"
    )


def test_unknown_backend_names_the_nearest() -> None:
    with pytest.raises(BackendUnavailable, match="Did you mean 'numpy'"):
        pick("numpi")
