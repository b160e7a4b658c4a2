"""Call the function of ``Search.minimize``; the module of its trials, which it writes, does it."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spearmint.trial.function_call import PYTHON, prepare_imports, read_private, write_private

if TYPE_CHECKING:
    from spearmint.trial.batch.trial import BatchTrial


@dataclass(frozen=True, slots=True)
class Objective:
    """A function, and how to call it.

    Attributes:
        function: The function of the user.
        by_name: Whether it has an argument for each variable; otherwise it receives one dict.
        choices: By ENUM variable: the value of each option.
    """

    function: Callable[..., Any]
    by_name: bool
    choices: Mapping[str, Mapping[str, Any]]

    def __call__(self, params: Mapping[str, Any]) -> Any:
        """Call the function with the parameters of ``main``."""
        values = plain_values(params, self.choices)
        return self.function(**values) if self.by_name else self.function(values)


@dataclass(frozen=True, slots=True)
class BatchObjective:
    """A function of the trials of a job.

    Attributes:
        function: The function of the user.
        choices: By ENUM variable: the value of each option.
    """

    function: Callable[..., Any]
    choices: Mapping[str, Mapping[str, Any]]

    def __call__(self, trials: Sequence[BatchTrial]) -> Any:
        """Call the function with the trials of a job, whose parameters become plain values."""
        for trial in trials:
            trial.params = plain_values(trial.params, self.choices)
        return self.function(trials)


def plain_values(
    params: Mapping[str, Any], choices: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the parameters of ``main`` as values; ``choices`` has those of each option."""
    return {
        name: choices[name][vector[0]] if name in choices else vector[0].item()
        for name, vector in params.items()
    }


def objective_file(directory: Path) -> Path:
    """Return the file with the function of a search."""
    return directory / ".spearmint" / "function.pickle"


def write_objective(directory: Path, pickled: bytes, path: list[str]) -> None:
    """Write the function of a search, by rename.

    Args:
        directory: Directory of the search.
        pickled: An Objective or BatchObjective as a pickle.
        path: Directories with its modules.
    """
    origin = {"python": PYTHON, "path": path, "directory": str(Path.cwd()), "objective": pickled}
    write_private(objective_file(directory), pickle.dumps(origin, protocol=5))


def call_objective(directory: Path, given: Any) -> Any:
    """Return the value of the function in the directory of a search, for a point, or for trials.

    The function runs in the working directory of the process that called ``minimize``.

    Raises:
        FileNotFoundError: The directory has no function.
        RuntimeError: Another version of Python pickled the function.
        BaseException: Any exception of the function, or of reading it.
    """
    try:
        content = read_private(objective_file(directory))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{directory} has no function: call minimize or maximize of spearmint.Search first"
        ) from None
    origin = pickle.loads(content)  # noqa: S301 - from this user
    prepare_imports(origin)
    os.chdir(origin["directory"])
    return pickle.loads(origin["objective"])(given)  # noqa: S301 - from this user
