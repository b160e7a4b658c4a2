"""Open the study of a search: of a config.pb, or of a space in Python."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from spearmint.choosers import make_chooser, parse_method_args
from spearmint.choosers.pruners import make_pruner
from spearmint.config.reader import load_experiment
from spearmint.controller.orphans import choose_driver
from spearmint.errors import InputError, NotWritable, reason_of
from spearmint.layout import Layout
from spearmint.model import Experiment, TrialState
from spearmint.search.declaration import declare
from spearmint.search.rungs import require_alone
from spearmint.search.space import Space
from spearmint.store.earlier import earlier_searches, learns_from_regions
from spearmint.store.feasibility import require_feasible
from spearmint.store.lock import ExperimentLock
from spearmint.store.session import (
    Session,
    in_region,
    known_regions,
    open_sessions,
    read_sessions,
)
from spearmint.transfer import EarlierSearch, Neighbours, for_region

Arguments = str | Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The chooser, the pruner and the storage of a search, by their names."""

    method: str
    method_args: Arguments | None
    seed: int
    storage: str | None
    pruner: str
    pruner_args: Arguments | None
    learn_from: Sequence[str | Path] = ()

    def open(self, find: Callable[[], Experiment]) -> Session:
        """Return the study with the chooser and the pruner; the caller holds the lock.

        ``find`` can write, so that it is called after the chooser was checked.
        """
        chooser = make_chooser(self.method, _as_text(self.method_args), seed=self.seed)
        experiment = find()
        require_feasible(experiment)
        name = self.pruner or experiment.pruner
        args = self.pruner_args or experiment.pruner_args
        pruner = make_pruner(name, _as_text(args)) if name else None
        if pruner is not None and experiment.has_front:
            raise InputError(
                f"the pruner {name} needs one objective, and the search has "
                f"{len(experiment.objectives)}",
                "Remove the pruner.",
            )
        sources = [*experiment.learn_from, *map(_text_of, self.learn_from)]
        _require_regions(experiment, sources)
        earlier = earlier_searches(sources, experiment.directory)
        require_alone(experiment.fidelity, {"pruner": pruner})
        (session,) = open_sessions(experiment, self.storage)
        session.study.use(chooser, pruner)
        with_regions = learns_from_regions(sources) and bool(experiment.region)
        session.study.learn(for_region(earlier, experiment.region), with_regions=with_regions)
        if with_regions:
            session.study.learn_from_regions(_other_regions(session, self.storage))
        return session


def _text_of(source: str | Path) -> str:
    """Return a source as config.pb writes it: a path is never the word ``regions``."""
    is_word = isinstance(source, Path) and learns_from_regions([str(source)])
    return f"./{source}" if is_word else str(source)


def _require_regions(experiment: Experiment, sources: Sequence[str]) -> None:
    """Raise InputError if regions should learn from each other and there are not several."""
    if not learns_from_regions(sources):
        return
    every = known_regions(load_experiment(experiment.path)).regions if experiment.region else ()
    if (count := len(every)) < 2:
        raise InputError(
            f'learn_from="regions" needs a config.pb with several regions, and this search has '
            f"{count or 'none'}",
            'Remove it. For a directory of this name, write: learn_from="./regions"',
        )


def _other_regions(session: Session, storage: str | None) -> list[EarlierSearch]:
    """Return the other regions as they are now."""
    every = read_sessions(session.experiment.path, storage)
    studies = {each.experiment.region: each.study for each in every}
    complete = {region: study.counts()[TrialState.COMPLETE] for region, study in studies.items()}
    read = Neighbours().of
    return read(session.experiment.region, complete, lambda name: studies[name].as_earlier())


class OpenSearch:
    """A study that this process has locked.

    Attributes:
        session: The study and its paths.
        space: The space in Python; None for a config.pb.
        busy: Held while a method uses the study.
    """

    def __init__(self, tools: Tools) -> None:
        self.busy = threading.RLock()
        self.is_open = False
        self.space: Space | None = None
        self.session: Session
        self._tools, self._stack = tools, ExitStack()
        self._lock: ExperimentLock | None = None

    def open_config(self, config: Path, region: str | None) -> None:
        """Open the search of a config.pb."""
        experiment = in_region(load_experiment(config), region)
        self._open(Layout(experiment.directory), lambda: experiment)

    def open_space(self, directory: Path, space: Space, *, maximize: bool | None) -> None:
        """Open the search of a space; end another object of this process that has it open.

        If this fails, the other object stays open.
        """
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NotWritable(f"cannot create {directory}: {reason_of(error)}") from None
        layout = Layout(directory.resolve())
        self.space = space
        storage = self._tools.storage
        with _idle_previous(layout.root) as previous:
            choose_driver(layout, "local")
            self._open(
                layout,
                lambda: declare(layout.root, space, storage, maximize=maximize),
                previous,
            )
            _OPEN[layout.root] = self

    def _open(
        self,
        layout: Layout,
        experiment: Callable[[], Experiment],
        previous: OpenSearch | None = None,
    ) -> None:
        """Open the study; take over the lock of ``previous``, and end it, when all succeeded."""
        lock = (None if previous is None else previous._lock) or ExperimentLock(layout)
        with ExitStack() as stack:
            if previous is None:
                stack.enter_context(lock)
            self.session = self._tools.open(experiment)
            self._stack = (stack if previous is None else previous._stack).pop_all()
        if previous is not None:
            previous.is_open = False
        self._lock, self.is_open = lock, True

    def set_direction(self, *, maximize: bool) -> None:
        """Change the direction of a search without trials.

        Raises:
            StudyMismatch: It has trials.
        """
        space, root = self.space, self.session.layout.root
        if space is not None and self.session.experiment.maximize != maximize:
            storage = self._tools.storage
            self.session = self._tools.open(
                lambda: declare(root, space, storage, maximize=maximize)
            )

    def has_directory(self) -> bool:
        """Return whether the directory is still the one that was opened: users delete it."""
        return self._lock is not None and self._lock.is_held()

    def close(self) -> None:
        """Release the lock."""
        self.is_open = False
        self._stack.close()
        root = self.session.layout.root
        if _OPEN.get(root) is self:
            del _OPEN[root]


_OPEN: dict[Path, OpenSearch] = {}  # searches of spaces, by directory


@contextmanager
def _idle_previous(root: Path) -> Iterator[OpenSearch | None]:
    """Yield the search that an earlier cell of a notebook opened.

    Yield None if it is in use, or if its directory was deleted.
    """
    previous = _OPEN.get(root)
    if previous is None or not previous.busy.acquire(blocking=False):
        yield None
        return
    try:
        if previous.has_directory():
            yield previous
        else:
            previous.close()
            yield None
    finally:
        previous.busy.release()


def _as_text(args: Arguments | None) -> dict[str, str]:
    if args is None:
        return {}
    if isinstance(args, str):
        return parse_method_args(args)
    return {name: str(value) for name, value in args.items()}


def direction_of(direction: str | None) -> bool | None:
    """Return whether a direction is ``maximize``; None for None. Raises InputError."""
    if direction not in (None, "minimize", "maximize"):
        raise InputError(f"invalid direction {direction!r}", "Write 'minimize' or 'maximize'.")
    return None if direction is None else direction == "maximize"
