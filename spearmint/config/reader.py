"""Read a config.pb into an Experiment."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from spearmint.config import experiment_pb2 as pb
from spearmint.config.conditions import read_conditions
from spearmint.config.constraints import read_constraints
from spearmint.config.document import Document
from spearmint.config.fidelity import read_fidelity
from spearmint.config.hips import NAME as HIPS_NAME
from spearmint.config.hips import is_hips
from spearmint.config.linear import read_linear, require_inside
from spearmint.config.objectives import read_objectives
from spearmint.config.regions import region_problem
from spearmint.config.values import read_values
from spearmint.config.variables import read_seed_point, read_variable
from spearmint.errors import ConfigError, InputError, next_command, reason_of
from spearmint.model import Experiment, Language, Variable
from spearmint.resources import Resources
from spearmint.run_options import RunOptions
from spearmint.trial.languages import environment_name

DEFAULT_NAME = "config.pb"
_REGIONS = "regions"  # of learn_from: no path


def load_experiment(path: Path) -> Experiment:
    """Read and check ``path``, a config.pb or the directory that contains it.

    In a directory without config.pb, the only ``*.pb`` file is read.

    Raises:
        ConfigError: The file is not in protobuf text format, or has an unknown field or an invalid
            value. The message has file, line, column and the values that are accepted.
        InputError: The file does not exist or cannot be read.
    """
    with contextlib.suppress(RuntimeError):  # no such user: "~name" is a usual file name
        path = path.expanduser()
    path = path.absolute()
    others: list[str] = []
    if path.is_dir():
        directory, path = path, path / DEFAULT_NAME
        others = [] if path.exists() else sorted(found.name for found in directory.glob("*.pb"))
        path = directory / others[0] if len(others) == 1 else path
    _refuse_hips(path)
    path = path.parent.resolve() / path.name  # one spelling: it identifies the jobs
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(
            f"no such file: {path}",
            f"Name one of: {', '.join(others)}."
            if others
            else "Name a config.pb, or a directory that contains one.",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {reason_of(error)}") from None
    return _experiment(Document(path, text))


def _refuse_hips(path: Path) -> None:
    """Raise InputError for the config.json of the HIPS variant, given or without a config.pb."""
    other = path.with_name(HIPS_NAME)
    asked = path == other or (path.name == DEFAULT_NAME and not path.exists())
    if asked and is_hips(other):
        raise InputError(
            f"{other} is a config of the HIPS variant of Spearmint",
            f"Write config.pb from it: {next_command('convert', path.parent)}",
        )


def _experiment(document: Document) -> Experiment:
    message, directory = document.message, document.path.parent
    _require(document, "language", "language: PYTHON")
    _require(document, "name", 'name: "branin"')
    _require(document, "variable", 'variable { name: "lr" type: FLOAT min: 0 max: 1 }')
    language = _language(document)
    variables = tuple(read_variable(document, i) for i in range(len(message.variable)))
    _require_unique(document, variables, language)
    variables = read_conditions(document, variables)
    run = read_values(message, RunOptions, directory, document.error)
    run["learn_from"] = tuple(_at(directory, source) for source in run.get("learn_from", ()))
    needed = read_values(message.resources, Resources, directory, document.error, "resources", 0)
    _require_regions(document, run.get("regions", ()))
    objectives = read_objectives(document, variables)
    is_one = len(objectives) == 1
    linear = read_linear(document, variables)
    seed_points = tuple(
        read_seed_point(document, i, variables) for i in range(len(message.seed_point))
    )
    require_inside(document, linear, variables, seed_points)
    return Experiment(
        path=document.path,
        name=_name(document, language),
        language=language,
        variables=variables,
        maximize=objectives[0].maximize if is_one else message.direction == pb.MAXIMIZE,
        objectives=objectives,
        constraints=read_constraints(document, variables, objectives),
        fidelity=read_fidelity(document),
        linear=linear,
        seed_points=seed_points,
        resources=Resources(**needed),
        **run,
    )


def _require(document: Document, field: str, example: str) -> None:
    if not any(known.name == field for known, _ in document.message.ListFields()):
        what = f"missing field {field!r}"
        raise ConfigError(document.path, what, f"Add a line: {example}")


def _language(document: Document) -> Language:
    name = pb.Language.Name(document.message.language)
    if name not in Language.__members__:
        raise document.error(
            f"language {name} is not supported",
            "Write PYTHON, SHELL or MATLAB. A SHELL script can start any other program.",
            "language",
            0,
        )
    return Language(name)


def _name(document: Document, language: Language) -> str:
    name = document.message.name
    if not name or "/" in name or name.startswith(".") or "\0" in name:
        raise document.error(
            f"invalid name {name!r}: expected a file name",
            'Write the name of the code without its ending: name: "branin" for branin.py.',
            "name",
            0,
        )
    endings = {Language.PYTHON: ".py", Language.MATLAB: ".m"}
    return name.removesuffix(endings.get(language, ""))


def _at(directory: Path, source: str) -> str:
    """Return an earlier search of config.pb; a path starts in ``directory``."""
    if source == _REGIONS or "://" in source or source.startswith(("/", "~")):
        return source
    return os.path.normpath(directory / source)


def _require_regions(document: Document, regions: tuple[str, ...]) -> None:
    if problem := region_problem(regions):
        place, what = problem
        raise document.error(what, 'Write one line for each region: region: "us"', "region", place)


def _require_unique(document: Document, variables: Iterable[Variable], language: Language) -> None:
    seen: dict[str, int] = {}
    is_shell = language is Language.SHELL
    for i, variable in enumerate(variables):
        names = {variable.name, *variable.elements()}
        if is_shell:
            names.add(environment_name(variable.name))
        if any(seen.setdefault(name, i) != i for name in names):
            fix = "Give each variable a different name."
            if is_shell:
                fix += " With SHELL, each character other than A-Z, a-z, 0-9 and _ becomes _."
            what = f"duplicate variable {variable.name!r}"
            raise document.error(what, fix, "variable", i, "name", 0)
