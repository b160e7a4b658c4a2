"""How a trial calls the user's code: a function or an executable; no heavy imports."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from spearmint.layout import TrialFolder, write_json, write_text
from spearmint.model import Params, Variable
from spearmint.trial.function_call import call_function
from spearmint.trial.octave import INSTALL, find_octave, octave_program
from spearmint.trial.outputs import (
    OBJECTIVES,
    OUTPUTS,
    BadResult,
    Result,
    to_result,
    to_text_result,
)

MAIN_BATCH = "main_batch"
"""Name of the function that trains several trials."""

_LONGEST_LINE = 256  # that the kernel reads of the first line

Spec = Mapping[str, Any]
"""Content of trial.json: job_id, directory, name, language, params, and outputs if any."""


def run_python(spec: Spec, folder: TrialFolder) -> Result:
    """Call ``main(job_id, params)`` of the module NAME.py and return its numbers.

    FLOAT and INT are passed as numpy arrays of length ``size``, ENUM as a list of str.

    Raises:
        BadResult: The function does not exist, or did not return the expected numbers.
        BaseException: Any exception of the user's code.
    """
    params, main = to_arrays(spec["params"]), main_of(spec)
    returned = main(spec["job_id"], params)
    return numbers_of(spec, returned)


def main_of(spec: Spec) -> Callable[[int, dict[str, Any]], object]:
    """Return ``main`` of the module NAME.py. Raises BadResult if there is no such function."""
    module = load_module(Path(spec["directory"]), spec["name"])
    main: object = getattr(module, "main", None)
    if not callable(main):
        hint = f"; to call {MAIN_BATCH}: --batch=8" if hasattr(module, MAIN_BATCH) else ""
        raise BadResult(f"{spec['name']}.py has no function main(job_id, params){hint}")
    return main


def numbers_of(spec: Spec, returned: object, verb: str = "main returned") -> Result:
    """Return the numbers of a trial; raise BadResult if they are not as expected.

    Args:
        spec: The trial.
        returned: What ``main`` returned.
        verb: Start of error messages.
    """
    return to_result(returned, spec.get(OUTPUTS, ()), verb, spec.get(OBJECTIVES, ()))


def to_entries(variables: Iterable[Variable], params: Params) -> dict[str, Any]:
    """Return ``params`` in the format of trial.json: kind and values by name."""
    return {
        variable.name: {"kind": variable.kind, "values": params[variable.name]}
        for variable in variables
        if variable.name in params  # the others are inactive
    }


def to_arrays(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``main``: numpy arrays for FLOAT and INT, lists of str for ENUM."""
    import numpy as np

    dtypes = {"FLOAT": np.float64, "INT": np.int64}
    return {
        name: np.array(entry["values"], dtype=dtypes[entry["kind"]])
        if entry["kind"] in dtypes
        else list(entry["values"])
        for name, entry in entries.items()
    }


def load_module(directory: Path, name: str) -> ModuleType:
    """Import the file NAME.py of ``directory``, even if another module has the same name.

    The directory is the last entry of sys.path: a wrapper called random.py must not replace the
    standard module for other imports. The file is sys.argv[0], without arguments: code that also
    runs as a script parses its options, and gets their defaults.
    """
    sys.path.append(str(directory))
    path = directory / f"{name}.py"
    sys.argv = [str(path)]
    found = importlib.util.spec_from_file_location(name, path)
    if not path.is_file() or found is None or found.loader is None:
        raise BadResult(f"{path} does not exist")
    module = importlib.util.module_from_spec(found)
    if name not in sys.modules and name not in sys.stdlib_module_names:
        sys.modules[name] = module
    found.loader.exec_module(module)
    return module


def run_shell(spec: Spec, folder: TrialFolder) -> Result:
    """Run the executable NAME or NAME.sh and return what it wrote to $SPEARMINT_RESULT.

    Raises:
        BadResult: The executable failed, or did not write the expected numbers.
    """
    directory = Path(spec["directory"])
    params = {name: entry["values"] for name, entry in spec["params"].items()}
    write_json(folder.params, params)
    folder.value.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "SPEARMINT_JOB_ID": str(spec["job_id"]),
        "SPEARMINT_PARAMS": str(folder.params),
        "SPEARMINT_RESULT": str(folder.value),
        **{environment_name(name): " ".join(map(str, values)) for name, values in params.items()},
    }
    argv = _command(directory, spec["name"])
    status = subprocess.run(argv, env=environment, stdin=subprocess.DEVNULL, check=False).returncode
    if status < 0:
        raise BadResult(f"{argv[-1]} was killed by {signal_name(-status)}")
    if status > 0:
        raise BadResult(f"{argv[-1]} exited with status {status}")
    return _read_value(folder.value, spec)


def run_matlab(spec: Spec, folder: TrialFolder) -> Result:
    """Call the function of NAME.m by Octave and return its number.

    Raises:
        BadResult: Octave is not installed, or the function failed or did not return one number.
    """
    command = find_octave()
    if command is None:
        raise BadResult(f"octave-cli is not installed on {os.uname().nodename}: {INSTALL}")
    program, reason = folder.path / "trial.m", folder.path / "reason.txt"
    for stale in (folder.value, reason):
        stale.unlink(missing_ok=True)
    text = octave_program(
        spec["name"], spec["job_id"], spec["params"], value=folder.value, reason=reason
    )
    write_text(program, text)
    argv = [*command, str(program)]
    status = subprocess.run(argv, stdin=subprocess.DEVNULL, check=False).returncode
    if status < 0:
        raise BadResult(f"Octave was killed by {signal_name(-status)}")
    if reason.exists():
        raise BadResult(reason.read_text(encoding="utf-8", errors="replace").strip())
    if status > 0 or not folder.value.exists():
        raise BadResult(f"Octave exited with status {status} before {spec['name']} returned")
    value, verb = float(folder.value.read_text()), f"{spec['name']} returned"
    return to_result(value, spec.get(OUTPUTS, ()), verb, spec.get(OBJECTIVES, ()))


def signal_name(number: int) -> str:
    """Return the name of a signal, ``SIGKILL`` for 9; its number as text if it has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def environment_name(name: str) -> str:
    """Return the name of the environment variable with the values of the variable ``name``."""
    return "SPEARMINT_PARAM_" + re.sub(r"\W", "_", name, flags=re.ASCII)


def _command(directory: Path, name: str) -> list[str]:
    for path in wrappers("SHELL", directory, name):
        if path.is_file():
            return shell_command(path)
    raise BadResult(f"neither {directory / name} nor {name}.sh exists")


def shell_command(path: Path) -> list[str]:
    """Return the command of a SHELL wrapper.

    A script that is not executable is given to the program of its first line (``#!``), as the
    kernel would do, or to /bin/sh.

    Raises:
        BadResult: It is a binary program that is not executable.
    """
    if os.access(path, os.X_OK):
        return [str(path)]
    with path.open("rb") as file:
        first = file.readline(_LONGEST_LINE).decode("utf-8", errors="replace")
    if first.startswith("\x7fELF"):
        raise BadResult(f"{path} is not executable: chmod +x {path}")
    # The kernel passes all after the program as one argument.
    program = first[2:].strip().split(maxsplit=1) if first.startswith("#!") else []
    return [*(program or ["/bin/sh"]), str(path)]


def _read_value(path: Path, spec: Spec) -> Result:
    try:
        text = path.read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        raise BadResult(
            "wrote no result: expected one number in the file $SPEARMINT_RESULT"
        ) from None
    return to_text_result(text, spec.get(OUTPUTS, ()), spec.get(OBJECTIVES, ()))


def wrappers(language: str, directory: Path, name: str) -> list[Path]:
    """Return the possible files of the user's code; one of them must exist."""
    ends = {"PYTHON": (".py",), "SHELL": ("", ".sh"), "MATLAB": (".m",)}[language]
    return [directory / f"{name}{end}" for end in ends]


LANGUAGES: dict[str, Callable[[Spec, TrialFolder], Result]] = {
    "PYTHON": run_python,
    "SHELL": run_shell,
    "MATLAB": run_matlab,
    "FUNCTION": call_function,
}
