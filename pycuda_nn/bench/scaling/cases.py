"""What is timed: networks, minibatches and numbers of GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pycuda_nn.bench.workloads import CLASSES

STRONG_BATCH = 8192


@dataclass(frozen=True, kw_only=True)
class ScalingNetwork:
    """A classifier with relu layers, and the minibatch of each GPU under weak scaling."""

    sizes: tuple[int, ...]
    batch: int


_NETFLIX = (512, 2048, 2048, 512, CLASSES)
_WIDE = (2048, 8192, 8192, 2048, CLASSES)
NETWORKS = {
    "netflix-b1024": ScalingNetwork(sizes=_NETFLIX, batch=1024),
    "netflix-b8192": ScalingNetwork(sizes=_NETFLIX, batch=8192),
    "wide-b2048": ScalingNetwork(sizes=_WIDE, batch=2048),
    "wide-b8192": ScalingNetwork(sizes=_WIDE, batch=8192),
}
QUICK = ("netflix-b1024", "netflix-b8192", "wide-b2048")


@dataclass(frozen=True, kw_only=True)
class Work:
    """One training to time; ``batch`` is the minibatch of all GPUs together."""

    sizes: tuple[int, ...]
    gpus: int
    batch: int

    @property
    def network(self) -> str:
        """The sizes as text."""
        return "-".join(map(str, self.sizes))


@dataclass(frozen=True, kw_only=True)
class Case:
    """A row of the table: ``work`` is compared with ``base``, the same training on one GPU.

    Attributes:
        scaling: ``weak``: the minibatch of a GPU is fixed. ``strong``: that of the training is.
    """

    scaling: str
    work: Work
    base: Work


def counts_up_to(gpus: int) -> tuple[int, ...]:
    """Return 1, 2, 4, ... and ``gpus`` itself."""
    powers = [1 << bit for bit in range(gpus.bit_length())]
    return tuple(sorted({*powers, gpus}))


def cases_of(names: Sequence[str], counts: Sequence[int]) -> list[Case]:
    """Return the rows: weak scaling of each network of ``NETWORKS``, then strong scaling."""
    cases = []
    for network in (NETWORKS[name] for name in names):
        base = Work(sizes=network.sizes, gpus=1, batch=network.batch)
        for gpus in counts:
            work = Work(sizes=network.sizes, gpus=gpus, batch=network.batch * gpus)
            cases.append(Case(scaling="weak", work=work, base=base))
    for sizes in dict.fromkeys(NETWORKS[name].sizes for name in names):
        base = Work(sizes=sizes, gpus=1, batch=STRONG_BATCH)
        for gpus in counts:
            work = Work(sizes=sizes, gpus=gpus, batch=STRONG_BATCH)
            cases.append(Case(scaling="strong", work=work, base=base))
    return cases


def works_of(cases: Sequence[Case], gpus: int) -> list[Work]:
    """Return the trainings on ``gpus`` GPUs, each once and those of a network together."""
    found = dict.fromkeys(
        work for case in cases for work in (case.work, case.base) if work.gpus == gpus
    )
    return sorted(found, key=lambda work: (work.sizes, work.batch))
