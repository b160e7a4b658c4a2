from __future__ import annotations

import re

import pytest

from pycuda_nn.backends import pick
from pycuda_nn.backends.numpy.session import NumpyBackend
from pycuda_nn.backends.testing import (
    BackendContract,
    sample_network,
    sample_parts,
    sample_recipe,
)
from pycuda_nn.cuda.backend import CudaBackend
from pycuda_nn.cuda.runtime.driver import no_gpu
from pycuda_nn.errors import BackendUnavailable
from pycuda_nn.layers import Dense
from pycuda_nn.network import Network
from pycuda_nn.protocols import Backend


class TestNumpy(BackendContract):
    def backend(self) -> Backend:
        return NumpyBackend()


class Broken(NumpyBackend):
    @classmethod
    def missing(cls) -> str | None:
        return "no device"


def test_auto_takes_the_first_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"broken": Broken, "numpy": NumpyBackend}
    monkeypatch.setattr("pycuda_nn.backends.BACKENDS", dict.fromkeys(kinds, ""))
    monkeypatch.setattr("pycuda_nn.backends.load", kinds.__getitem__)
    assert type(pick("auto")) is NumpyBackend
    with pytest.raises(BackendUnavailable, match=r"'broken' .*: no device"):
        pick("broken")


@pytest.mark.skipif(no_gpu() is None, reason="this machine has a GPU")
def test_no_gpu_is_one_clear_line() -> None:
    with pytest.raises(BackendUnavailable) as caught:
        pick("cuda")
    line = str(caught.value)
    assert line.startswith("backend 'cuda' ")
    assert "NVIDIA driver" in line
    assert "\n" not in line


def test_a_gpu_that_stands_idle_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(CudaBackend, "has_device", lambda: True)
    monkeypatch.setattr(CudaBackend, "missing", lambda: "not installed: pycuda")
    assert type(pick("auto")) is NumpyBackend
    (message,) = caplog.messages
    assert re.search("CPU.* GPU: not installed: pycuda$", message)


def test_auto_passes_over_a_backend_that_cannot_train_the_network(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name, answer in (("missing", None), ("has_device", True)):
        monkeypatch.setattr(CudaBackend, name, lambda answer=answer: answer)
    assert type(pick("auto", network=Network.from_sizes((4, 3, 2)))) is CudaBackend
    assert type(pick("auto", network=Network((Dense(4, 3), Dense(3, 2))))) is NumpyBackend
    assert re.search("CPU.* GPU: layer 2 is Dense", caplog.text)


def test_numpy_says_what_it_trains(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="pycuda_nn")
    network = sample_network("softmax")
    params = network.initial_params(0)
    NumpyBackend().open(network, sample_recipe(), sample_parts("softmax"), params)
    (line,) = caplog.messages
    assert line.startswith("training path: numpy, ")
    assert re.search(r"\(5 layers, softmax .*3 outputs, minibatch 16\)$", line)


def test_unknown_backend_names_the_nearest() -> None:
    with pytest.raises(BackendUnavailable, match=r"'numpi'.*'numpy'"):
        pick("numpi")
