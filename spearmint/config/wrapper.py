"""The user's code: it exists and compiles, before any trial starts."""

from __future__ import annotations

import ast
import warnings
from pathlib import Path

from spearmint.errors import InputError, did_you_mean, next_command, reason_of
from spearmint.model import Experiment, Language
from spearmint.trial.languages import MAIN_BATCH, shell_command, wrappers
from spearmint.trial.octave import INSTALL, find_octave
from spearmint.trial.outputs import BadResult


def require_wrapper(experiment: Experiment) -> None:
    """Check that the user's code exists and can be started.

    Raises:
        InputError: It does not exist, or is a program that is not executable.
    """
    files = wrappers(experiment.language, experiment.directory, experiment.name)
    path = next((path for path in files if path.is_file()), None)
    if path is None:
        others = [path.stem for path in experiment.directory.glob(f"*{files[-1].suffix}")]
        raise InputError(
            f"no such file: {' or '.join(map(str, files))}, which config.pb names",
            did_you_mean(experiment.name, others) or "Create it, or correct the name in config.pb.",
        )
    if experiment.language is Language.SHELL:
        try:
            shell_command(path)
        except BadResult as error:
            raise InputError(str(error)) from None
        except OSError as error:
            raise InputError(f"cannot read {path}: {reason_of(error)}") from None


def require_octave(experiment: Experiment) -> None:
    """Raise InputError if the trials need Octave and this machine, which runs them, lacks it."""
    if experiment.language is Language.MATLAB and find_octave() is None:
        raise InputError(
            "language MATLAB is run by GNU Octave, and octave-cli is not installed",
            f"Install it: {INSTALL}",
        )


def require_syntax(experiment: Experiment) -> None:
    """Compile the user's module, and the modules next to it that it imports; run nothing.

    An import below ``try``, ``if`` or ``def`` may never run, so it is not followed.

    Raises:
        InputError: A file has a syntax error; the message has the line, and for Python 2 the
            command that converts it. Or ``main`` is missing, or with ``batch`` ``main_batch``.
    """
    if experiment.language is not Language.PYTHON:
        return
    _check(experiment.directory, experiment.name, set())
    path = experiment.directory / f"{experiment.name}.py"
    tree = _compiled(path)
    if experiment.batch == 1 and not _can_define(tree, "main") and _can_define(tree, MAIN_BATCH):
        raise InputError(
            f"{path} has no function main(job_id, params)", f"To call {MAIN_BATCH}: --batch=8"
        )
    if experiment.batch > 1 and not _can_define(tree, MAIN_BATCH):
        raise InputError(
            f"{path} has no function {MAIN_BATCH}(trials), which batch: {experiment.batch} calls",
            "Write one, or remove batch from config.pb.",
        )


def _can_define(tree: ast.Module | None, name: str) -> bool:
    """Return whether a module can have a function; True if it is not known."""
    if tree is None:
        return True
    for node in ast.walk(tree):
        if isinstance(node, ast.alias) and (node.asname or node.name) in (name, "*"):
            return True
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return True
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return True
    return False


def _check(directory: Path, name: str, seen: set[str]) -> None:
    """Compile NAME.py and the files in the directory that it imports."""
    path = directory / f"{name}.py"
    if name in seen or not path.is_file():
        return
    seen.add(name)
    tree = _compiled(path)
    for node in tree.body if tree else ():
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        for module in names:
            _check(directory, module.partition(".")[0], seen)


def _compiled(path: Path) -> ast.Module | None:
    """Return the tree of a file; None if the compiler gives up without a syntax error."""
    try:
        data = path.read_bytes()
        if b"\0" in data:  # a SyntaxError only since Python 3.12
            raise InputError(f"{path} contains a null byte", "Correct the file.")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the trials show them
            tree = ast.parse(data, path)
            compile(tree, path, "exec", dont_inherit=True)
            return tree
    except OSError as error:
        raise InputError(f"cannot read {path}: {reason_of(error)}") from None
    except SyntaxError as error:
        raise _syntax_error(path, error) from None
    except (ValueError, RecursionError, MemoryError):
        return None  # the first trial shows whether it runs


def _syntax_error(path: Path, error: SyntaxError) -> InputError:
    from starmint.python2 import is_old_line

    place, line = f"{path}:{error.lineno}", (error.text or "").strip()
    if is_old_line(line):
        fix = f"Convert it: {next_command('convert', path.parent)}"
        return InputError(f"{place} is Python 2: {line}", fix)
    return InputError(f"{place}: {error.msg}{f': {line}' if line else ''}", "Correct the file.")
