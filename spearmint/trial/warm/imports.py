"""Find what the user's code imports, without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from pathlib import Path

_WRITES = {"update", "setdefault", "pop", "clear"}
_WRITERS = {"putenv", "unsetenv", "load_dotenv"}


@dataclass(slots=True)
class Imports:
    """The imports of a file and of the files in its directory that it imports.

    Attributes:
        modules: Names of modules of other directories, in the order of the source.
        writes_environment: Whether the code changes environment variables. Some modules read them
            when they are imported, so they must be imported after the change.
    """

    modules: list[str] = field(default_factory=list)
    writes_environment: bool = False


def imports_of(directory: Path, name: str) -> Imports:
    """Return the imports of NAME.py in ``directory``; none of a file that has a syntax error."""
    found = Imports()
    _read(directory, name, found, set())
    found.modules = list(dict.fromkeys(found.modules))
    return found


def _read(directory: Path, name: str, found: Imports, seen: set[str]) -> None:
    path = _local(directory, name)
    if path is None or name in seen:
        return
    seen.add(name)
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    found.writes_environment |= any(_writes_environment(node) for node in ast.walk(tree))
    for module in _modules(tree):
        top = module.partition(".")[0]
        if _is_installed(top):
            found.modules.append(module)
        else:
            _read(directory, top, found, seen)


def _local(directory: Path, name: str) -> Path | None:
    for path in (directory / f"{name}.py", directory / name / "__init__.py"):
        if path.is_file():
            return path
    return None


def _is_installed(name: str) -> bool:
    import sys

    if name in sys.builtin_module_names:
        return True
    try:
        return PathFinder.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _modules(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            for alias in node.names:  # a submodule or another name
                yield f"{node.module}.{alias.name}"


def _writes_environment(node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript):
        is_written = isinstance(node.ctx, ast.Store | ast.Del)
        return is_written and _is_environment(node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in _WRITERS or (
            node.func.attr in _WRITES and _is_environment(node.func.value)
        )
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in _WRITERS
    return isinstance(node, ast.AugAssign) and _is_environment(node.target)


def _is_environment(node: ast.AST) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name == "environ"
