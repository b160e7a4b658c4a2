"""Call the project's commands in the process of the test, which has imported everything.

Tests of signals, kills, terminals and imports start separate processes instead.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import IO
from unittest import mock

import optuna

Done = subprocess.CompletedProcess[str]


def spearmint(*arguments: str | Path, **settings: object) -> Done:
    """Run ``spearmint``; for ``settings`` see ``run``."""
    return run("spearmint", *arguments, **settings)


def starcluster(*arguments: str | Path, **settings: object) -> Done:
    """Run ``starcluster``; for ``settings`` see ``run``."""
    return run("starcluster", *arguments, **settings)


def run(
    package: str,
    *arguments: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
) -> Done:
    """Call ``main`` of a package's ``cli``; raise an exception that it does not handle.

    Args:
        package: Package of the command.
        arguments: Arguments of the command.
        cwd: Working directory. Default: the current one.
        env: Complete environment. Default: the current one.
        stdin: Text of standard input.
    """
    main = importlib.import_module(f"{package}.cli").main
    argv = [package, *map(str, arguments)]
    environment = dict(os.environ if env is None else env)
    with contextlib.ExitStack() as stack:
        out, err = (
            stack.enter_context(tempfile.TemporaryFile("w+", newline="", encoding="utf-8"))
            for _ in "oe"
        )
        stack.enter_context(_as_process(argv, cwd or Path.cwd(), environment))
        stack.enter_context(mock.patch.object(sys, "stdin", StringIO(stdin)))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        status = _status(main)
        return subprocess.CompletedProcess(argv, status, _text(out), _text(err))


def _status(main: Callable[[], object]) -> int:
    """Return the exit status that the interpreter would have."""
    try:
        code = main()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    return code if isinstance(code, int) else 0


def _text(file: IO[str]) -> str:
    file.flush()
    file.seek(0)
    return file.read()


@contextlib.contextmanager
def _as_process(argv: list[str], cwd: Path, env: dict[str, str]) -> Iterator[None]:
    """Restore at the end the global state that the end of a process discards."""
    verbosity, log = optuna.logging.get_verbosity(), logging.getLogger("starcluster")
    kept = log.level, log.propagate, list(log.handlers)
    with (
        mock.patch.object(sys, "argv", argv),
        mock.patch.dict(os.environ, env, clear=True),
        contextlib.chdir(cwd),
        warnings.catch_warnings(),
    ):
        try:
            yield
        finally:
            optuna.logging.set_verbosity(verbosity)
            log.level, log.propagate, log.handlers = kept
