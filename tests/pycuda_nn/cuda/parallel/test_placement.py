"""Where the rows of a training on several GPUs lie."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from pycuda_nn.backends.testing import SGD
from pycuda_nn.protocols import Split
from tests.pycuda_nn.cuda.parallel.fakes.drivers import faked_drivers

ROW = 32 * 4 + 4  # bytes of 20 padded float32 inputs and a class


@pytest.fixture(scope="module")
def placed() -> Iterator[Callable[..., dict[str, str]]]:
    """Return a function that returns the place of each part."""
    with faked_drivers():
        from pycuda_nn.cuda.parallel.rows import placements
        from tests.pycuda_nn.cuda.parallel.fakes.step import Case

        def place(room: int, *, peers: bool = True, size: int = 4, valid: int = 100) -> Any:
            plan = Case(size=size, optimizer=SGD, widths=(20, 16, 3), loss="softmax").plan
            parts = {
                name: Split(x=np.zeros((n, 20), np.float32), y=np.zeros(n, np.int32))
                for name, n in (("train", 1000), ("valid", valid))
            }
            chosen = placements(plan, parts, size, room, peers=peers)
            return {name: at.name.lower() for name, at in chosen.items()}

        yield place


def test_rows_that_fit_are_on_every_gpu(placed: Callable[..., Any]) -> None:
    assert placed(1100 * ROW) == {"train": "replicated", "valid": "replicated"}


def test_the_smaller_part_has_the_memory_first(placed: Callable[..., Any]) -> None:
    assert placed(1099 * ROW) == {"train": "dealt", "valid": "replicated"}
    assert placed(1099 * ROW, valid=2000) == {"train": "replicated", "valid": "pinned"}


def test_rows_are_dealt_out_while_a_share_and_all_targets_fit(placed: Callable[..., Any]) -> None:
    share = 100 * ROW + 250 * 128 + 1000 * 4
    assert placed(share + 250 * 4)["train"] == "dealt"
    assert placed(share - 1)["train"] == "pinned"
    assert placed(share + 250 * 4, size=2)["train"] == "pinned"


def test_gpus_that_cannot_read_each_other_use_pinned_memory(placed: Callable[..., Any]) -> None:
    assert placed(1099 * ROW, peers=False) == {"train": "pinned", "valid": "replicated"}


def test_without_memory_all_rows_are_pinned(placed: Callable[..., Any]) -> None:
    assert placed(0) == {"train": "pinned", "valid": "pinned"}
    assert placed(-1) == {"train": "pinned", "valid": "pinned"}
