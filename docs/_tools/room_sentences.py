"""The purpose of each folder of the packages: the first sentence of its ``__init__``."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "spearmint",
    "starcluster",
    "starcluster_plugins",
    "sge_jobs",
    "condor_jobs",
    "pycuda_nn",
)


def folders(package: str) -> list[Path]:
    """Return the folders of ``package`` with Python files, the highest layer first."""
    found = {path.parent for path in (ROOT / package).rglob("*.py")}
    order = layers()
    return sorted(found, key=lambda folder: (_place(folder, order), folder.as_posix()))


def layers() -> list[str]:
    """Return the modules in the layers of import-linter, each contract from its highest layer."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    lines = [line for contract in contracts for line in contract.get("layers", ())]
    return [module for line in lines for module in re.split(r"\s*[:|]\s*", line)]


def _place(folder: Path, order: list[str]) -> tuple[int, int, int]:
    parts = folder.relative_to(ROOT).parts
    top, whole = ".".join(parts[:2]), ".".join(parts)
    return (
        0 if len(parts) == 1 else 1 + (order.index(top) if top in order else len(order)),
        len(parts),
        order.index(whole) if whole in order else len(order),
    )


def sentence(folder: Path) -> str:
    """Return the first sentence of a folder's docstring; empty without one."""
    init = folder / "__init__.py"
    source = init.read_text(encoding="utf-8") if init.exists() else ""
    text = " ".join((ast.get_docstring(ast.parse(source)) or "").split("\n\n")[0].split())
    return re.split(r"(?<=\.)\s+(?=[A-Z])", text)[0]


def page() -> str:
    """Return a table for each package, as reStructuredText."""
    return "\n".join(_table(package) for package in PACKAGES)


def _table(package: str) -> str:
    head, *rest = folders(package)
    lines = [package, "~" * len(package), "", sentence(head), ""]
    files = sorted(path.stem for path in head.glob("[a-z]*.py"))
    if rest:
        lines += [".. list-table::", "   :widths: 25 75", ""]
    for folder in rest:
        name = folder.relative_to(ROOT / package).as_posix()
        lines += [f"   * - ``{name}/``", f"     - {sentence(folder)}"]
    lines += ["", f"Modules next to the folders: {', '.join(f'``{name}``' for name in files)}.", ""]
    return "\n".join(lines)
