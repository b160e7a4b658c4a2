"""Read a config.pb into an Experiment."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from spearmint.config import experiment_pb2 as pb
from spearmint.config.document import Document
from spearmint.config.regions import region_problem
from spearmint.config.values import read_values
from spearmint.config.variables import read_seed_point, read_variable
from spearmint.errors import ConfigError, InputError, did_you_mean
from spearmint.model import Experiment, Language, Variable
from spearmint.resources import Resources
from spearmint.run_options import RunOptions
from spearmint.trial.languages import environment_name, wrappers

DEFAULT_NAME = "config.pb"


def load_experiment(path: Path) -> Experiment:
    """Read and check ``path``, a config.pb or the directory that holds one.

    In a directory without a file of this name, its only ``*.pb`` is meant.

    Raises:
        ConfigError: Not text format, an unknown field, or a value that makes no sense; the
            message names file, line, column and what was expected.
        InputError: There is no such file.
    """
    with contextlib.suppress(RuntimeError):  # no such user: it is a name like any other
        path = path.expanduser()
    path = path.absolute()
    others: list[str] = []
    if path.is_dir():
        directory, path = path, path / DEFAULT_NAME
        others = [] if path.exists() else sorted(found.name for found in directory.glob("*.pb"))
        path = directory / others[0] if len(others) == 1 else path
    path = path.parent.resolve() / path.name  # one spelling: trials are found again by it
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(
            f"no such file: {path}",
            f"There are: {', '.join(others)}; name one."
            if others
            else "Name a config.pb, or a directory that holds one.",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    return _experiment(Document(path, text))


def _experiment(document: Document) -> Experiment:
    message, directory = document.message, document.path.parent
    _require(document, "language", "language: PYTHON")
    _require(document, "name", 'name: "branin"')
    _require(document, "variable", 'variable { name: "lr" type: FLOAT min: 0 max: 1 }')
    language = _language(document)
    variables = tuple(read_variable(document, i) for i in range(len(message.variable)))
    _require_unique(document, variables, language)
    run = read_values(message, RunOptions, directory, document.error)
    needed = read_values(message.resources, Resources, directory, document.error, "resources", 0)
    _require_regions(document, run.get("regions", ()))
    return Experiment(
        path=document.path,
        name=_name(document, language),
        language=language,
        variables=variables,
        maximize=message.direction == pb.MAXIMIZE,
        seed_points=tuple(
            read_seed_point(document, i, variables) for i in range(len(message.seed_point))
        ),
        resources=Resources(**needed),
        **run,
    )


def _require(document: Document, field: str, example: str) -> None:
    if not any(known.name == field for known, _ in document.message.ListFields()):
        what = f"field {field!r} is missing"
        raise ConfigError(document.path, what, f"Add a line: {example}")


def _language(document: Document) -> Language:
    name = pb.Language.Name(document.message.language)
    if name not in Language.__members__:
        raise document.error(
            f"language {name} is not supported",
            "Expected PYTHON or SHELL; a SHELL script can start any other program.",
            "language",
            0,
        )
    return Language(name)


def _name(document: Document, language: Language) -> str:
    name = document.message.name
    if not name or "/" in name or name.startswith(".") or "\0" in name:
        raise document.error(
            f"name {name!r} is not a file name",
            'Expected the wrapper without its ending: name: "branin" for branin.py.',
            "name",
            0,
        )
    return name.removesuffix(".py") if language is Language.PYTHON else name


def _require_regions(document: Document, regions: tuple[str, ...]) -> None:
    if problem := region_problem(regions):
        place, what = problem
        raise document.error(what, 'Expected a line each: region: "us"', "region", place)


def _require_unique(document: Document, variables: Iterable[Variable], language: Language) -> None:
    seen: dict[str, int] = {}
    is_shell = language is Language.SHELL
    for i, variable in enumerate(variables):
        names = {variable.name, *variable.elements()}
        if is_shell:
            names.add(environment_name(variable.name))
        if any(seen.setdefault(name, i) != i for name in names):
            fix = "Give each its own name."
            if is_shell:
                fix += " For SHELL, letters other than A-Z, a-z, 0-9 and _ count as _."
            what = f"two variables are named {variable.name!r}"
            raise document.error(what, fix, "variable", i, "name", 0)


def require_wrapper(experiment: Experiment) -> None:
    """Check that the user's code exists, before any trial starts.

    Raises:
        InputError: It is not.
    """
    files = wrappers(experiment.language, experiment.directory, experiment.name)
    if not any(path.is_file() for path in files):
        others = [path.stem for path in experiment.directory.glob(f"*{files[-1].suffix}")]
        raise InputError(
            f"there is no {' or '.join(str(path) for path in files)}, which config.pb names",
            did_you_mean(experiment.name, others) or "Write it, or correct the name in config.pb.",
        )
