"""Read a config.pb into an Experiment."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterable
from pathlib import Path

from google.protobuf import text_format

from spearmint.config import experiment_pb2 as pb
from spearmint.config.positions import FieldPath, locate_fields
from spearmint.config.regions import region_problem
from spearmint.config.resources import read_resources
from spearmint.errors import ConfigError, InputError, did_you_mean
from spearmint.model import Experiment, Kind, Language, Params, Value, Variable
from spearmint.trial.languages import environment_name, wrappers

DEFAULT_NAME = "config.pb"
_LARGEST_INT = 2**53  # a double in config.pb holds every integer up to here


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
    return _Reader(path, text).experiment()


class _Reader:
    """One pass over one file; knows where each field stands."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.places = locate_fields(path, text, pb.Experiment())
        self.message = pb.Experiment()
        try:
            text_format.Parse(text, self.message)
        except text_format.ParseError as error:
            raise self._syntax(error) from None

    def _syntax(self, error: text_format.ParseError) -> ConfigError:
        line, column = error.GetLine() or 0, error.GetColumn() or 0
        what = re.sub(r"^\d+:\d+ ?: ", "", str(error)).replace("starmint.spearmint.", "")
        fix = ""
        if value := re.search(r'Enum type "([\w.]+)" has no value named', what):
            enum = {
                "Language": pb.Language,
                "Direction": pb.Direction,
                "Experiment.ParameterSpec.Type": pb.Experiment.ParameterSpec.Type,
            }[value.group(1)]
            word = what.rpartition(" ")[2].rstrip(".")
            what = f"unknown value {word}; expected one of {', '.join(enum.keys())}"
            fix = did_you_mean(word, enum.keys())
        return ConfigError(self.path, what, fix, line=line, column=column)

    def _error(self, what: str, fix: str, *at: str | int) -> ConfigError:
        """Return an error at the field ``at``, or at the nearest block around it."""
        place: FieldPath = at
        while place and place not in self.places:
            place = place[:-1]
        line, column = self.places.get(place, (0, 0))
        return ConfigError(self.path, what, fix, line=line, column=column)

    def experiment(self) -> Experiment:
        message = self.message
        self._require(message.HasField("language"), "language", "language: PYTHON")
        self._require(message.HasField("name"), "name", 'name: "branin"')
        self._require(
            bool(message.variable), "variable", 'variable { name: "lr" type: FLOAT min: 0 max: 1 }'
        )
        variables = tuple(self._variable(i, spec) for i, spec in enumerate(message.variable))
        self._unique(variables)
        timeout = message.trial_timeout if message.HasField("trial_timeout") else None
        if timeout is not None and not timeout > 0:
            raise self._error(
                f"trial_timeout is {timeout:g}", "Expected seconds above 0.", "trial_timeout", 0
            )
        return Experiment(
            path=self.path,
            name=self._name(),
            language=self._language(),
            variables=variables,
            maximize=message.direction == pb.MAXIMIZE,
            seed_points=tuple(
                self._seed_point(i, variables) for i in range(len(message.seed_point))
            ),
            max_retries=message.max_retries if message.HasField("max_retries") else 1,
            trial_timeout_s=timeout,
            regions=self._regions(),
            pruner=message.pruner,
            pruner_args=message.pruner_args,
            warm_start=message.warm_start,
            resources=read_resources(message.resources, self.path.parent, self._error),
        )

    def _require(self, present: bool, field: str, example: str) -> None:
        if not present:
            raise ConfigError(self.path, f"field {field!r} is missing", f"Add a line: {example}")

    def _language(self) -> Language:
        name = pb.Language.Name(self.message.language)
        if name not in Language.__members__:
            raise self._error(
                f"language {name} is not supported",
                "Expected PYTHON or SHELL; a SHELL script can start any other program.",
                "language",
                0,
            )
        return Language(name)

    def _name(self) -> str:
        name = self.message.name
        if not name or "/" in name or name.startswith(".") or "\0" in name:
            raise self._error(
                f"name {name!r} is not a file name",
                'Expected the wrapper without its ending: name: "branin" for branin.py.',
                "name",
                0,
            )
        return name.removesuffix(".py") if self._language() is Language.PYTHON else name

    def _regions(self) -> tuple[str, ...]:
        regions = tuple(self.message.region)
        if problem := region_problem(regions):
            place, what = problem
            raise self._error(what, 'Expected a line each: region: "us"', "region", place)
        return regions

    def _unique(self, variables: Iterable[Variable]) -> None:
        seen: dict[str, int] = {}
        is_shell = self._language() is Language.SHELL
        for i, variable in enumerate(variables):
            names = {variable.name, *variable.elements()}
            if is_shell:
                names.add(environment_name(variable.name))
            for name in names:
                if seen.setdefault(name, i) != i:
                    fix = "Give each its own name."
                    if is_shell:
                        fix += " For SHELL, letters other than A-Z, a-z, 0-9 and _ count as _."
                    what = f"two variables are named {variable.name!r}"
                    raise self._error(what, fix, "variable", i, "name", 0)

    def _variable(self, i: int, spec: pb.Experiment.ParameterSpec) -> Variable:
        at = ("variable", i)
        if not spec.HasField("name") or not spec.name:
            raise self._error("a variable without a name", 'Add: name: "lr"', *at)
        if not spec.HasField("type"):
            fix = "Add one of: type: FLOAT, type: INT, type: ENUM"
            raise self._error(f"variable {spec.name!r} has no type", fix, *at)
        if spec.size < 1:
            fix = "Expected a size of at least 1."
            raise self._error(f"variable {spec.name!r} has size {spec.size}", fix, *at, "size", 0)
        kind = Kind(pb.Experiment.ParameterSpec.Type.Name(spec.type))
        if kind is Kind.ENUM:
            options = self._options(i, spec)
            return Variable(name=spec.name, kind=kind, size=spec.size, options=options)
        low, high = self._bounds(i, spec, kind)
        return Variable(name=spec.name, kind=kind, size=spec.size, low=low, high=high, log=spec.log)

    def _options(self, i: int, spec: pb.Experiment.ParameterSpec) -> tuple[str, ...]:
        at = ("variable", i)
        if not spec.options:
            fix = 'Add a line for each choice: options: "relu"'
            raise self._error(f"ENUM variable {spec.name!r} has no options", fix, *at)
        for k, option in enumerate(spec.options):
            if option in spec.options[:k]:
                fix = "List each choice once."
                what = f"option {option!r} of {spec.name!r} stands twice"
                raise self._error(what, fix, *at, "options", k)
        if spec.log:
            fix = "Drop it, or make the variable FLOAT or INT."
            raise self._error(f"ENUM variable {spec.name!r} has a log scale", fix, *at, "log", 0)
        return tuple(spec.options)

    def _bounds(self, i: int, spec: pb.Experiment.ParameterSpec, kind: Kind) -> tuple[float, float]:
        at = ("variable", i)
        for field in ("min", "max"):
            if not spec.HasField(field):
                fix = f"Add a line such as {field}: 1"
                raise self._error(f"variable {spec.name!r} has no {field}", fix, *at)
            bound = getattr(spec, field)
            if not math.isfinite(bound):
                what = f"{field} of {spec.name!r} is {bound}"
                raise self._error(what, "Expected a finite number.", *at, field, 0)
            if kind is Kind.INT and (bound != int(bound) or abs(bound) > _LARGEST_INT):
                what = f"{field} of INT variable {spec.name!r} is {bound:g}"
                raise self._error(what, "Expected a whole number.", *at, field, 0)
        if spec.min > spec.max:
            what = f"min {spec.min:g} of {spec.name!r} is above max {spec.max:g}"
            raise self._error(what, "Swap them.", *at, "min", 0)
        if spec.log and spec.min <= 0:
            what = f"log scale of {spec.name!r} with min {spec.min:g}"
            raise self._error(what, "A log scale needs a min above 0.", *at, "min", 0)
        return spec.min, spec.max

    def _seed_point(self, i: int, variables: tuple[Variable, ...]) -> Params:
        point: dict[str, tuple[Value, ...]] = {}
        by_name = {variable.name: variable for variable in variables}
        for k, param in enumerate(self.message.seed_point[i].param):
            at = ("seed_point", i, "param", k)
            variable = by_name.get(param.name)
            if variable is None:
                fix = f"Expected one of: {', '.join(by_name)}."
                raise self._error(f"seed point names no variable {param.name!r}", fix, *at)
            values: tuple[Value, ...] = (*param.dbl_val, *param.int_val, *param.str_val)
            if len(values) != variable.size or not all(fits(variable, v) for v in values):
                what = f"seed point: {param.name} = {list(values)} is outside of the variable"
                raise self._error(what, f"Expected {describe(variable)}.", *at)
            point[param.name] = tuple(_typed(variable, value) for value in values)
        return point


def require_wrapper(experiment: Experiment) -> None:
    """See that the user's code is there, before any trial is started.

    Raises:
        InputError: It is not.
    """
    files = wrappers(experiment.language, experiment.directory, experiment.name)
    if not any(path.is_file() for path in files):
        others = [path.stem for path in experiment.directory.glob(f"*{files[-1].suffix}")]
        raise InputError(
            f"there is no {' or '.join(str(path) for path in files)}, which config.pb names",
            did_you_mean(experiment.name, others) or "Write it, or mend the name in config.pb.",
        )


def fits(variable: Variable, value: Value) -> bool:
    """Tell whether ``value`` lies in one element of ``variable``."""
    if variable.kind is Kind.ENUM:
        return value in variable.options
    if isinstance(value, str) or not variable.low <= value <= variable.high:
        return False
    return variable.kind is not Kind.INT or value == int(value)


def _typed(variable: Variable, value: Value) -> Value:
    if variable.kind is Kind.ENUM:
        return value
    return float(value) if variable.kind is Kind.FLOAT else int(value)


def describe(variable: Variable) -> str:
    """Return ``2 FLOAT from 0 to 1 (log)`` for messages."""
    if variable.kind is Kind.ENUM:
        return f"{variable.size} of {', '.join(variable.options)}"
    scale = " (log)" if variable.log else ""
    bounds = f"from {_exact(variable.low)} to {_exact(variable.high)}"
    return f"{variable.size} {variable.kind} {bounds}{scale}"


def _exact(bound: float) -> str:
    short = f"{bound:g}"
    return short if float(short) == bound else repr(bound)
