"""Name the command that adds missing packages to this installation.

The packages of starmint ask for it when an optional package is missing. They import it only then.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
import sys
from importlib import metadata
from pathlib import Path

__all__ = ["extra_command", "install_command"]

_EXTRA = re.compile(r"extra\s*==\s*[\"'](?P<name>[^\"']+)[\"']")


def extra_command(extra: str) -> str:
    """Return the shell command that installs the packages of an extra, such as ``aws``.

    It lists the packages instead of ``starmint[aws]``, so that it is also right for a wheel or a
    checkout that is on no package index.
    """
    try:
        requirements = metadata.requires("starmint") or []
    except metadata.PackageNotFoundError:
        # A checkout on PYTHONPATH, without an installation.
        return install_command(f"{Path(__file__).resolve().parents[1]}[{extra}]")
    return install_command(*_of_extra(requirements, extra))


def install_command(*requirements: str) -> str:
    """Return the shell command that installs these requirements where this Python finds them."""
    quoted = " ".join(shlex.quote(requirement) for requirement in requirements)
    return f"{_installer()} {quoted}"


def _of_extra(requirements: list[str], extra: str) -> list[str]:
    found = []
    for line in requirements:
        requirement, _, marker = line.partition(";")
        match = _EXTRA.search(marker)
        if match and match["name"] == extra:
            found.append(requirement.strip())
    return found


def _installer() -> str:
    prefix = Path(sys.prefix)
    if (prefix / "pipx_metadata.json").is_file():
        return f"pipx inject {prefix.name}"
    if (prefix / "uv-receipt.toml").is_file() or not importlib.util.find_spec("pip"):
        # Environments of uv contain no pip.
        return f"uv pip install --python {shlex.quote(sys.executable)}"
    if shutil.which("python") == sys.executable and _beside("pip"):
        return "pip install"
    return f"{shlex.quote(sys.executable)} -m pip install"


def _beside(program: str) -> bool:
    """Tell if PATH finds this program in the directory of the interpreter."""
    found = shutil.which(program)
    return found is not None and Path(found).parent == Path(sys.executable).parent
