from __future__ import annotations

import pytest

from pycuda_nn.bench.scaling.cases import NETWORKS, STRONG_BATCH, Work, cases_of, works_of
from pycuda_nn.bench.scaling.cases import counts_up_to as counts


@pytest.mark.parametrize(
    ("gpus", "expected"), [(2, (1, 2)), (3, (1, 2, 3)), (4, (1, 2, 4)), (8, (1, 2, 4, 8))]
)
def test_counts_are_powers_of_two_and_all(gpus: int, expected: tuple[int, ...]) -> None:
    assert counts(gpus) == expected


def test_weak_fixes_the_minibatch_of_a_gpu_and_strong_that_of_the_training() -> None:
    cases = cases_of(["netflix-b1024", "netflix-b8192"], (1, 2, 4))
    found = [(case.scaling, case.work.gpus, case.work.batch, case.base.batch) for case in cases]
    assert found == [
        ("weak", 1, 1024, 1024), ("weak", 2, 2048, 1024), ("weak", 4, 4096, 1024),
        ("weak", 1, 8192, 8192), ("weak", 2, 16384, 8192), ("weak", 4, 32768, 8192),
        ("strong", 1, 8192, 8192), ("strong", 2, 8192, 8192), ("strong", 4, 8192, 8192),
    ]  # fmt: skip
    assert all(case.base.gpus == 1 for case in cases)


def test_a_training_of_two_tables_is_timed_once() -> None:
    cases = cases_of(["netflix-b1024", "netflix-b8192"], (1, 8))
    sizes = NETWORKS["netflix-b1024"].sizes
    assert works_of(cases, 1) == [Work(sizes=sizes, gpus=1, batch=n) for n in (1024, 8192)]
    # 8 x 1,024 rows are also the strong minibatch.
    assert [work.batch for work in works_of(cases, 8)] == [STRONG_BATCH, 65536]


def test_the_networks_of_the_claims() -> None:
    named = {name: (network.sizes, network.batch) for name, network in NETWORKS.items()}
    netflix, wide = (512, 2048, 2048, 512, 10), (2048, 8192, 8192, 2048, 10)
    assert named == {
        "netflix-b1024": (netflix, 1024),
        "netflix-b8192": (netflix, 8192),
        "wide-b2048": (wide, 2048),
        "wide-b8192": (wide, 8192),
    }
