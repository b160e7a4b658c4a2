"""Search a space: minimize a function, or ask for trials and tell their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spearmint.errors import InputError, next_command
from spearmint.model import Trial
from spearmint.search.ask_tell import AskTell, one_thread
from spearmint.search.display import as_dataframe, as_html, summary
from spearmint.search.function import store_function
from spearmint.search.minimize import check_limits, run_trials
from spearmint.search.opening import Arguments, OpenSearch, Tools, direction_of
from spearmint.search.space import read_space

if TYPE_CHECKING:
    import pandas as pd


class Search(AskTell):
    """A search, locked for this process until ``close``.

    Trials and results are stored immediately, so that another process with the same arguments
    continues the search. The methods are thread-safe; only one thread runs at a time.

    Args:
        config: A space, or the path of a config.pb. A space is a dict: ``(low, high)`` or
            ``(low, high, "log")`` for real numbers, ``range(low, end)`` or
            ``(range(low, end), "log")`` for whole numbers, a list of choices, or ``bool``. With
            :func:`spearmint.when` only some trials have it, with :func:`spearmint.guess` the search
            starts at a value.
        directory: Directory of the search of a space. It is created if necessary.
        direction: ``minimize`` or ``maximize`` what ``tell`` receives, for a space. Default: that
            of earlier runs, or ``minimize``.
        method: Name of the chooser.
        method_args: Its arguments.
        seed: Random seed of the chooser.
        storage: URL of an Optuna storage. Default: that of earlier runs, or SQLite.
        region: The region, if config.pb has any.
        objectives: Several objectives, for a space: ``minimize`` or ``maximize`` by name, or a
            pair of this and the worst value of use, such as ``("maximize", 500)``. The function
            then returns a dict with these names, and :attr:`front` has the best trials.
        constraints: Limits of other values of a trial, for a space: ``(low, high)`` by name, with
            None for no limit. The function then returns a dict with these names and the objective,
            whose name is ``objective`` unless there are ``objectives``.
        fidelity: Steps of a full training, for a space: trials train in parts, and only the best
            continue. ``81``, or ``{"name": "epochs", "min": 1, "max": 81, "reduction_factor": 3}``.
            A proposal then has ``steps`` and a ``folder``, and a function that is minimized calls
            :func:`spearmint.steps`. Excludes pruners, constraints and several objectives.
        require: Linear constraints of the variables, for a space, that all proposals meet: a text
            such as ``"units_1 >= units_2"``, or a list of them.
        pruner: Name of the pruner, for functions that report values.
        pruner_args: Its arguments.
        learn_from: Directories of earlier searches to learn from, or URLs of storages with
            ``#STUDY`` at the end, in addition to those of config.pb. Their variables and bounds
            can differ; :attr:`lessons` says what is used.

    Raises:
        InputError: The space or an argument is invalid.
        ConfigError: config.pb is invalid.
        StudyMismatch: The directory has trials of another space.
        AlreadyRunning: The command or another process runs the search.

    Example:
        >>> search = spearmint.Search({"x": (0, 1), "n": range(1, 9)}, directory="out")
        >>> search.minimize(lambda x, n: (x - 0.5) ** 2 * n, trials=40, n_jobs=4)
        >>> search.best.params
    """

    def __init__(
        self,
        config: str | Path | Mapping[str, Any],
        *,
        directory: str | Path | None = None,
        direction: str | None = None,
        objectives: Mapping[str, str | tuple[str, float]] | None = None,
        constraints: Mapping[str, Any] | None = None,
        require: str | Sequence[str] | None = None,
        fidelity: int | Mapping[str, Any] | None = None,
        method: str = "GPEIOptChooser",
        method_args: Arguments | None = "",
        seed: int = 1,
        storage: str | None = None,
        region: str | None = None,
        pruner: str = "",
        pruner_args: Arguments | None = "",
        learn_from: str | Path | Sequence[str | Path] = (),
    ) -> None:
        tools = Tools(
            method=method,
            method_args=method_args,
            seed=seed,
            storage=storage,
            pruner=pruner,
            pruner_args=pruner_args,
            learn_from=[learn_from] if isinstance(learn_from, str | Path) else learn_from,
        )
        self._opened = OpenSearch(tools)
        self._direction, maximize = direction, direction_of(direction)
        if isinstance(config, Mapping):
            if directory is None or region is not None:
                raise InputError(
                    "a space requires a directory, and has no region",
                    'Write: spearmint.Search({...}, directory="my_search")',
                )
            if objectives is not None and direction is not None:
                raise InputError(
                    "direction and objectives exclude each other",
                    'Write: objectives={"error": "minimize", "speed": "maximize"}',
                )
            space = read_space(config, constraints, objectives, require, fidelity)
            if len(space.objectives) == 1:
                maximize = space.objectives[0].maximize
            self._opened.open_space(Path(directory), space, maximize=maximize)
        elif isinstance(config, str | Path):
            only = (directory, maximize, objectives, constraints, require, fidelity)
            if any(each is not None for each in only):
                raise InputError(
                    "directory, direction, objectives, constraints, require and fidelity are only "
                    "for a space",
                    "config.pb has the last five, and its directory has the search.",
                )
            self._opened.open_config(Path(config), region)
        else:
            raise InputError(
                f"not a space: {config!r}",
                'Write a dict such as {"lr": (1e-5, 1, "log")}, or a path.',
            )
        self._begin()

    def minimize(
        self,
        function: Callable[..., Any],
        trials: int = 100,
        n_jobs: int = 1,
        *,
        batch: int = 1,
        progress: bool = True,
        **limits: Any,
    ) -> Trial | None:
        """Run trials of ``function`` in processes of this machine, and return the best one.

        With ``objectives`` their directions count. With several the result is None, and
        :attr:`front` has the best trials.

        Ctrl-C starts no more trials and waits for the running ones; the second one terminates
        them. A trial that raises or crashes is broken, and the search continues.

        Args:
            function: Returns the objective, or a dict if there are constraints. It receives one
                dict, or each variable by its name if its arguments have the names of the
                variables. It can be defined in the script, in a module or in a cell of a notebook.
            trials: Complete and pruned trials, including earlier calls and processes.
            n_jobs: Trials at the same time, or jobs with ``batch``; -1 for the number of cores.
            batch: Most trials of a job. Above 1, ``function`` receives a list of
                :class:`spearmint.BatchTrial`, whose ``params`` are dicts of values. It calls
                ``trial.tell(value)`` for each, or returns the list of their values.
            progress: Print a line for each trial to standard error.
            limits: Options of ``spearmint run`` in its units: ``trial_timeout="15m"``,
                ``max_time="2h"``, ``max_trial_time``, ``patience``, ``target``, ``max_broken`` and
                ``max_retries``.

        Raises:
            InputError: An argument is invalid, the search is that of a config.pb, or it was opened
                with the other direction.
            StudyMismatch: Earlier trials were maximized.
            SearchFailed: The first trials all failed.
            KeyboardInterrupt: Ctrl-C stopped the search. The same call continues it.
        """
        return self._run(function, trials, n_jobs, batch, progress, limits, maximize=False)

    def maximize(
        self,
        function: Callable[..., Any],
        trials: int = 100,
        n_jobs: int = 1,
        *,
        batch: int = 1,
        progress: bool = True,
        **limits: Any,
    ) -> Trial | None:
        """Search the largest value of ``function``; for the rest see ``minimize``."""
        return self._run(function, trials, n_jobs, batch, progress, limits, maximize=True)

    @one_thread
    def _run(
        self,
        function: Callable[..., Any],
        trials: int,
        n_jobs: int,
        batch: int,
        progress: bool,
        limits: Mapping[str, Any],
        *,
        maximize: bool,
    ) -> Trial | None:
        self._require_open()
        space = self._opened.space
        if space is None:
            raise InputError(
                f"the function of this search is main of {self._experiment.name}.py",
                f"Run: {next_command(self._experiment.path)}. Or give the space as a dict.",
            )
        processes, options = check_limits(trials, n_jobs, batch, limits)
        if space.objectives and maximize:
            raise InputError(
                "the directions are those of objectives", "Call search.minimize(function, ...)."
            )
        if not space.objectives:
            self._require_direction("maximize" if maximize else "minimize")
            self._opened.set_direction(maximize=maximize)
        self._begin()
        store_function(self._experiment, space, function, takes_trials=batch > 1)
        run_trials(self._opened.session, processes, options, batch=batch, progress=progress)
        return self.best

    def _require_direction(self, called: str) -> None:
        given = self._direction
        if given not in (None, called):
            raise InputError(
                f"the search has direction={given!r}, and {called}() was called",
                f"Call search.{given}(function, ...), or leave out the direction.",
            )

    @one_thread
    def dataframe(self) -> pd.DataFrame:
        """Return all trials as a pandas DataFrame, with a column for each variable.

        Raises:
            InputError: pandas is not installed.
        """
        return as_dataframe(self.trials, self._experiment.fidelity)

    def __repr__(self) -> str:
        return f"<Search {summary(*self._state(), maximize=self._experiment.maximize)}>"

    def _repr_html_(self) -> str:
        return as_html(*self._state(), maximize=self._experiment.maximize)

    @one_thread
    def _state(self) -> tuple[str, list[Trial]]:
        return str(self._opened.session.layout.root), self.trials
