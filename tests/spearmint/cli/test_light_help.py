"""Modules that the help of a command imports."""

from __future__ import annotations

import subprocess
import sys

import pytest

from spearmint.cli.main import COMMANDS

HEAVY = {
    "google",
    "jinja2",
    "matplotlib",
    "numpy",
    "optuna",
    "psutil",
    "rich",
    "scipy",
    "sge_jobs",
    "sqlalchemy",
}
CODE = """
import sys
from spearmint.cli import main
sys.argv = ["spearmint", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    print(*{name.partition(".")[0] for name in sys.modules}, file=sys.stderr)
    raise
"""


@pytest.mark.parametrize("words", [[], *([name] for name in sorted(COMMANDS))])
def test_help_loads_no_heavy_library(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, *words, "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Usage: spearmint" in done.stdout
    heavy = HEAVY if words else {*HEAVY, "cloup"}
    assert not heavy & set(done.stderr.split())
