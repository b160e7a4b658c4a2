"""Files with default options of Grid Engine's commands."""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Mapping
from pathlib import Path


def default_files(environment: Mapping[str, str], name: str) -> dict[Path, str]:
    """Return the texts of the files called ``name`` of the cell and of the user, by path.

    Args:
        environment: Environment variables of the command, with SGE_ROOT.
        name: ``sge_request``, which is also read in the current directory, or ``sge_qstat``.
    """
    root, cell = environment.get("SGE_ROOT", "/"), environment.get("SGE_CELL", "default")
    places = [Path(root, cell, "common", name)]
    with contextlib.suppress(KeyError):  # the commands ignore $HOME
        places.append(Path(pwd.getpwuid(os.geteuid()).pw_dir, f".{name}"))
    if name == "sge_request":
        with contextlib.suppress(OSError):
            places.append(Path.cwd() / f".{name}")
    texts = {}
    for path in places:
        with contextlib.suppress(OSError):
            texts[path] = path.read_text(encoding="utf-8", errors="replace")
    return texts
