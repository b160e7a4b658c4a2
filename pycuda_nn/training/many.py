"""Train many networks on the same data at once, each as :func:`train` would train it alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pycuda_nn.backends import pick
from pycuda_nn.config import TrainConfig, require_config
from pycuda_nn.data.dataset import Dataset
from pycuda_nn.errors import ConfigError, TrainingDiverged
from pycuda_nn.protocols import Backend, SessionGroup
from pycuda_nn.training.checkpoint import Checkpoint
from pycuda_nn.training.facts import DataFacts
from pycuda_nn.training.fit_to_data import recipe
from pycuda_nn.training.history import EpochReport
from pycuda_nn.training.loop import (
    TrainResult,
    announce,
    begin_of,
    result_of,
    resumed,
)
from pycuda_nn.training.run import OnEpoch, TrainingRun

ManyResult = TrainResult | TrainingDiverged


def train_many(
    configs: Iterable[TrainConfig],
    train: Dataset,
    valid: Dataset | None = None,
    *,
    on_epoch: Callable[[int, EpochReport], object] | None = None,
    on_end: Callable[[int, ManyResult], object] | None = None,
    checkpoints: Sequence[str | Path | None] | None = None,
    resume: bool = False,
    backend: str | Backend = "auto",
) -> list[ManyResult]:
    """Train a network for each of ``configs`` on ``train``; ``valid`` is only evaluated.

    On a GPU, networks of the same shape, minibatch and optimizer share every kernel. numpy trains
    one epoch of each after the other, with exactly the results of :func:`train`. On a GPU they
    differ by rounding, because a product of many networks has its own algorithm.

    Example:
        >>> import pycuda_nn as nn
        >>> train, valid, test = nn.split(nn.load_data("digits"))
        >>> configs = [nn.TrainConfig(lr=lr, epochs=2) for lr in (1e-3, 1e-2)]
        >>> [len(result.history) for result in nn.train_many(configs, train, valid)]
        [2, 2]

    Args:
        configs: The settings of each network; all of them can differ.
        train, valid: Parts of one source; an empty ``valid`` is the same as None.
        on_epoch: Called with the number of a network, from 0, and each of its reports. A network
            ends early, alone, if the answer is True. An exception ends all of them.
        on_end: Called with the number and the result of each network as soon as it ends.
        checkpoints: File of each network to replace after each of its epochs, or None.
        resume: Continue from the ``checkpoints`` that exist.
        backend: ``auto``, a name, or a backend.

    Returns:
        The result of each network; the :class:`TrainingDiverged` of a network whose loss became
        infinite or not a number, which does not affect the others.

    Raises:
        ConfigError, DataError, CheckpointError: See :func:`train`.
    """
    if isinstance(configs, TrainConfig):
        raise ConfigError("configs are one TrainConfig, not several", "Pass a list: [config].")
    return train_on(
        DataFacts(train, valid),
        list(configs),
        on_epoch=on_epoch,
        on_end=on_end,
        checkpoints=checkpoints,
        resume=resume,
        backend=backend,
    )


def train_on(
    facts: DataFacts,
    configs: Sequence[TrainConfig],
    *,
    on_epoch: Callable[[int, EpochReport], object] | None,
    on_end: Callable[[int, ManyResult], object] | None,
    checkpoints: Sequence[str | Path | None] | None,
    resume: bool,
    backend: str | Backend,
    on_round: Callable[[], object] = lambda: None,
) -> list[ManyResult]:
    """Train on the rows of ``facts``; see :func:`train_many`.

    ``on_round`` is called after each epoch of all networks that train together.
    """
    for config in configs:
        require_config(config)
    if checkpoints is not None and len(checkpoints) != len(configs):
        raise ConfigError(f"{len(configs)} configs, but {len(checkpoints)} checkpoints")
    paths = [path and Path(path) for path in checkpoints or [None] * len(configs)]
    used = [path.absolute() for path in paths if path]
    if len(set(used)) < len(used):
        raise ConfigError("two networks have the same checkpoint file")
    results: dict[int, ManyResult] = {}

    def end(number: int, result: ManyResult) -> None:
        results[number] = result
        if on_end is not None:
            on_end(number, result)

    open_ones: list[_Member] = []
    for number, (config, path) in enumerate(zip(configs, paths, strict=True)):
        begin = begin_of(config, facts, {}, None)
        if path and resume and path.exists():
            begin = resumed(begin, path)
        told = None if on_epoch is None else partial(on_epoch, number)
        member = _Member(number, config, begin, path or None, told)
        if begin.history.finished(config):
            end(number, result_of(begin, config))
        else:
            open_ones.append(member)
    announce(member.config for member in open_ones)
    for members in _by_scaling(open_ones):
        _train(members, facts, backend, end, on_round)
    return [results[number] for number in range(len(configs))]


@dataclass(frozen=True)
class _Member:
    """A network before its next epoch."""

    number: int
    config: TrainConfig
    begin: Checkpoint
    path: Path | None
    on_epoch: OnEpoch | None


def _by_scaling(members: list[_Member]) -> list[list[_Member]]:
    """Return the networks that see the same scaled rows together."""
    groups: dict[Any, list[_Member]] = {}
    for member in members:
        key = (member.config.scale, member.begin.targets is None)
        groups.setdefault(key, []).append(member)
    return list(groups.values())


def _train(
    members: list[_Member],
    facts: DataFacts,
    backend: str | Backend,
    end: Callable[[int, ManyResult], None],
    on_round: Callable[[], object],
) -> None:
    for chosen, covered in _by_backend(members, backend):
        parts = facts.parts(covered[0].begin)
        begins = [member.begin for member in covered]
        paths = [member.path if chosen.saves else None for member in covered]
        group = chosen.open_many(
            [begin.network for begin in begins],
            [recipe(member.config) for member in covered],
            parts,
            [begin.state["params"] for begin in begins],
        )
        try:
            runs = [
                TrainingRun(
                    session, one.config, one.begin, parts, path, one.on_epoch, ends_on_true=True
                )
                for session, one, path in zip(group.sessions, covered, paths, strict=True)
            ]
            _epochs(group, runs, covered, end, on_round)
        finally:
            group.close()


def _by_backend(
    members: list[_Member], backend: str | Backend
) -> list[tuple[Backend, list[_Member]]]:
    """Return each backend with its networks; ``auto`` can choose one for each network."""
    if not isinstance(backend, str):
        return [(backend, members)]
    groups: dict[str, tuple[Backend, list[_Member]]] = {}
    for member in members:
        chosen = pick(backend, network=member.begin.network)
        groups.setdefault(chosen.name, (chosen, []))[1].append(member)
    return list(groups.values())


def _epochs(
    group: SessionGroup,
    runs: list[TrainingRun],
    members: list[_Member],
    end: Callable[[int, ManyResult], None],
    on_round: Callable[[], object],
) -> None:
    """Run epoch after epoch of all networks that have not ended."""
    active = set(range(len(runs)))
    while active:
        inputs = {place: runs[place].inputs() for place in sorted(active)}
        for place, losses in group.run_epochs(inputs):
            run, member = runs[place], members[place]
            try:
                stop = run.take(losses) is True
            except TrainingDiverged as error:
                active.remove(place)
                end(member.number, error)
                continue
            if stop or run.finished:
                active.remove(place)
                end(member.number, result_of(run.ended(), member.config))
        on_round()
