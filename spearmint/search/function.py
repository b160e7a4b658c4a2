"""Store the function that a search minimizes, for the processes of its trials."""

from __future__ import annotations

import dis
import inspect
import pickletools
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from spearmint.errors import InputError
from spearmint.layout import write_text
from spearmint.model import Experiment
from spearmint.search.digest import digest_of
from spearmint.search.space import Space
from spearmint.tasks.folder import import_paths, name_of, pickled
from spearmint.trial.languages import MAIN_BATCH
from spearmint.trial.objective import BatchObjective, Objective, write_objective

_WRAPPER = '''\
"""Written by spearmint.Search: calls {function}.

{digest}
"""

from pathlib import Path

from spearmint.trial.objective import call_objective


def {main}:
    return call_objective(Path(__file__).parent, {argument})


def _imports_of_the_function():
    """Name modules for the process from which trials start; never called."""
{imports}
'''
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def store_function(
    experiment: Experiment,
    space: Space,
    function: Callable[..., Any],
    *,
    takes_trials: bool = False,
) -> None:
    """Write the function and the module that calls it into the directory of the search.

    Args:
        experiment: The search.
        space: Its variables.
        function: The function of one point, or of the trials of a job if ``takes_trials``.

    Raises:
        InputError: It cannot be called with the variables, or cannot be pickled; or the working
            directory of this process was deleted.
    """
    if not callable(function):
        raise InputError(f"not a function: {function!r}", "Write: search.minimize(function, ...)")
    try:
        Path.cwd()
    except FileNotFoundError:
        raise InputError(
            "the working directory of this process was deleted",
            "Change to another one: os.chdir(...). The trials run in it.",
        ) from None
    content = pickled(name_of(function), _objective(space, function, takes_trials=takes_trials))
    directory = experiment.directory
    write_objective(directory, content, import_paths())
    modules = sorted(filter(_is_importable, set(_modules_of(function, content))))
    text = _WRAPPER.format(
        main=f"{MAIN_BATCH}(trials)" if takes_trials else "main(job_id, params)",
        argument="trials" if takes_trials else "params",
        function=re.sub(r"[^\w.]", "_", name_of(function).strip("<>")),
        digest=digest_of(function),
        imports="\n".join(f"    import {module}" for module in modules) or "    pass",
    )
    wrapper = directory / f"{experiment.name}.py"
    # Rewritten only for another digest: a new time of the file means that the code was changed
    # after its trials failed.
    if not wrapper.exists() or wrapper.read_text(encoding="utf-8") != text:
        write_text(wrapper, text, durable=True)


def _objective(
    space: Space, function: Callable[..., Any], *, takes_trials: bool
) -> Objective | BatchObjective:
    if takes_trials:
        _require_one_argument(function)
        return BatchObjective(function, space.choices)
    conditional = {variable.name for variable in space.variables if variable.when}
    names = [variable.name for variable in space.variables]
    return Objective(function, takes_names(function, names, conditional), space.choices)


def _require_one_argument(function: Callable[..., Any]) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a function in C
        return
    try:
        signature.bind(None)
    except TypeError as error:
        raise InputError(
            f"cannot call {name_of(function)}{signature} with a list: {error}",
            "With batch, the function has one argument, the list of trials: train(trials).",
        ) from None


def takes_names(
    function: Callable[..., Any], names: Iterable[str], conditional: Collection[str] = ()
) -> bool:
    """Return whether ``function`` has an argument for each variable; False if it takes a dict.

    Raises:
        InputError: It takes neither one argument nor an argument for each variable, or an argument
            for a ``conditional`` variable has no default.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a function in C
        return False
    names, parameters = list(names), signature.parameters.values()
    has_names = any(parameter.name in names for parameter in parameters)
    if not has_names and all(each.kind is not each.VAR_KEYWORD for each in parameters):
        needed = [each for each in parameters if each.default is each.empty]
        if len(needed) <= 1 and any(
            each.kind in (*_POSITIONAL, each.VAR_POSITIONAL) for each in needed or parameters
        ):
            return False
    try:
        signature.bind(**dict.fromkeys(names))
    except TypeError as error:
        raise InputError(
            f"cannot call {name_of(function)}{signature} with the variables "
            f"{', '.join(names)}: {error}",
            "Give it one argument, which receives a dict, or an argument for each variable.",
        ) from None
    for each in parameters:
        if each.name in conditional and each.default is each.empty:
            raise InputError(
                f"argument {each.name!r} of {name_of(function)}{signature} has no default, and the "
                "variable is not active in every trial",
                f"Give it a default, such as {each.name}=None.",
            )
    return True


def _modules_of(function: Callable[..., Any], content: bytes) -> Iterator[str]:
    """Yield the modules that the trials import: those in the pickle and in the code.

    A function of a module is pickled by name; its trials import all that the module imports.
    """
    for _, argument, _ in pickletools.genops(content):
        if isinstance(argument, str) and argument in sys.modules:
            yield argument
    code = getattr(function, "__code__", None)
    if code is not None:
        yield from (
            each.argval for each in dis.get_instructions(code) if each.opname == "IMPORT_NAME"
        )
    if getattr(function, "__module__", "__main__") != "__main__":
        for value in getattr(function, "__globals__", {}).values():
            name = value.__name__ if isinstance(value, ModuleType) else _module_of(value)
            if name in sys.modules:
                yield name


def _module_of(value: Any) -> str:
    name = getattr(value, "__module__", "")
    return name if isinstance(name, str) else ""


def _is_importable(module: str) -> bool:
    top = module.partition(".")[0]
    known = top in ("__main__", "builtins", "spearmint", "cloudpickle")
    return not known and all(part.isidentifier() for part in module.split("."))
