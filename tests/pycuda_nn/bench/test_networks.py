from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from pycuda_nn.bench.networks import find
from pycuda_nn.bench.train import config_for
from pycuda_nn.bench.workloads import KNOWN, Workload, make_rows

SPELLED = {
    "784-300-10": Workload(name="", sizes=(784, 300, 10), batch=128, rows=1 << 17),
    "20-64-64-1,b=32,adam": Workload(
        name="", sizes=(20, 64, 64, 1), batch=32, rows=1 << 17, loss="squared", optimizer="adam"
    ),
    "9-5-1,logistic,dropout=.25,b=65536": Workload(
        name="", sizes=(9, 5, 1), batch=65536, rows=1 << 20, loss="logistic", dropout=0.25
    ),
    "9-5-3,sgd,squared": Workload(
        name="", sizes=(9, 5, 3), batch=128, rows=1 << 17, loss="squared"
    ),
}


@pytest.mark.parametrize("text", SPELLED)
def test_spelled_networks(text: str) -> None:
    assert find(text) == dataclasses.replace(SPELLED[text], name=text)


def test_both_parts_have_every_class() -> None:
    workload = find("41-16-212")
    parts = [make_rows(workload, 1000, seed)[1] for seed in range(2)]
    assert [set(y) for y in parts] == [set(range(212))] * 2


def test_known_networks() -> None:
    assert [find(name) for name in KNOWN] == list(KNOWN.values())


@pytest.mark.parametrize("text", SPELLED)
def test_can_be_trained(text: str) -> None:
    workload = find(text)
    config = config_for(workload, 3)
    assert (config.hidden, config.loss) == (workload.sizes[1:-1], workload.loss)
    x, y = make_rows(workload, 40)
    assert x.shape == (40, workload.sizes[0])
    if workload.loss != "squared":
        assert set(np.unique(y)) <= set(range(max(2, workload.sizes[-1])))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mnist-b182", "mnist-b128"),
        ("netflix", "SIZES"),
        ("10", "SIZES"),
        ("10-3", "784-300-10"),
        ("10-0-3", "784-300-10"),
        ("10-5-3,b=0", "'b=0'"),
        ("10-5-3,b64", "'b64'"),
        ("10-5-3,", "''"),
        ("10-5-3,dropout=1.5", "'dropout=1.5'"),
        ("10-5-3,logistic", "1 output"),
        ("10-5-1,softmax", "2 outputs"),
    ],
)
def test_what_is_wrong_is_named(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=r"^'") as caught:
        find(text)
    assert words in str(caught.value)
    assert text in str(caught.value)
