from __future__ import annotations

import re

import pytest

from pycuda_nn.cuda.options import CudaOptions, cuda_options, parse_bytes
from pycuda_nn.cuda.runtime.precision import PRECISIONS
from pycuda_nn.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512", 512),
        ("2GiB", 2 << 30),
        ("512M", 512 << 20),
        ("1.5 gb", 3 << 29),
        ("4k", 4096),
        (".5G", 1 << 29),
        ("2.M", 2 << 20),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "GiB", ".", ".G", "-1", "2 bananas", "1e9"])
def test_no_sizes(text: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"'{text}'")):
        parse_bytes(text)


@pytest.mark.parametrize(
    "wrong",
    [
        {"precision": "bf17"},
        {"device": -1},
        {"memory_limit": 0},
        {"gpus": 0},
        {"gpus": -1},
        {"gpus": "some"},
        {"gpus": ""},
        {"exchange": "mpi"},
    ],
    ids=str,
)
def test_wrong_options_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        CudaOptions(**wrong)  # type: ignore[arg-type]


def test_what_is_not_given_is_the_default() -> None:
    assert cuda_options(precision=None, memory_limit=None) == CudaOptions()


@pytest.mark.parametrize("gpus", [1, 4, "all", "auto"])
def test_numbers_of_gpus(gpus: int | str) -> None:
    assert cuda_options(precision=None, memory_limit=None, gpus=gpus).gpus == gpus


def test_no_gpus_are_not_one_gpu() -> None:
    with pytest.raises(ConfigError, match="'0'"):
        cuda_options(precision=None, memory_limit=None, gpus=0)


def test_every_precision_can_be_computed() -> None:
    for name in PRECISIONS:
        assert CudaOptions(precision=name).precision == name
