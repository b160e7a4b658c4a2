"""The packages at a commit as boxes: folders, files, lines, imports, layers, import cycles.

A box is a folder. A file next to folders is a separate box if some of these files import the
folders and others are imported by them, as ``search.py`` and ``errors.py`` of a package are.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "spearmint",
    "starcluster",
    "starcluster_plugins",
    "sge_jobs",
    "condor_jobs",
    "pycuda_nn",
    "starmint",
)


@dataclass(slots=True)
class Box:
    """A folder, or a file next to folders.

    Attributes:
        name: Path in its package, such as ``cuda/gemm`` or ``errors``.
        files: Python files in it, its ``__init__`` included.
        layer: 0 for a box without imports; otherwise 1 above the highest box that it imports.
        cycle: Whether it imports itself through other boxes.
    """

    name: str
    is_folder: bool
    files: int = 0
    lines: int = 0
    layer: int = 0
    cycle: bool = False


@dataclass(slots=True)
class PackageView:
    """One package.

    Attributes:
        boxes: By name.
        imports: Imports of modules, by importing and imported box.
        flat: Python files directly in the package, without its ``__init__``.
        outside: Imports of modules of other packages, by package.
    """

    package: str
    boxes: dict[str, Box] = field(default_factory=dict)
    imports: dict[tuple[str, str], int] = field(default_factory=dict)
    flat: int = 0
    outside: dict[str, int] = field(default_factory=dict)

    @property
    def layers(self) -> int:
        """Number of layers."""
        return 1 + max((box.layer for box in self.boxes.values()), default=-1)

    @property
    def folders(self) -> list[Box]:
        """Boxes that are folders."""
        return [box for box in self.boxes.values() if box.is_folder]


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """Yield a folder with the files of ``commit``; the working tree if it is empty."""
    if not commit:
        yield ROOT
        return
    archive = subprocess.run(
        ["git", "archive", commit, *PACKAGES], cwd=ROOT, capture_output=True, check=True
    ).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(folder, filter="data")
        yield Path(folder)


def read_views(commit: str = "") -> list[PackageView]:
    """Return the five packages at ``commit``, or those of the working tree if it is empty."""
    with checkout(commit) as tree:
        sys.path.insert(0, str(tree))
        try:
            graph = grimp.build_graph(*PACKAGES, cache_dir=None)
        finally:
            sys.path.pop(0)
        return [_view(tree, package, graph) for package in PACKAGES]


def _view(tree: Path, package: str, graph: grimp.ImportGraph) -> PackageView:
    view = _divided(tree, package, graph, {"."})
    reach = _reach(view)
    around = {name for name in reach if any(other in reach[name] for other in _inside(view, name))}
    split = {name for name in around if any(name in reach[other] for other in _inside(view, name))}
    view = _divided(tree, package, graph, {".", *split})
    _drop_unlinked_inits(view)
    _set_layers(view)
    return view


def _inside(view: PackageView, name: str) -> list[str]:
    """Return the boxes that are folders of folder ``name``."""
    return [other for other in view.boxes if other.startswith(f"{name}/")]


def _divided(tree: Path, package: str, graph: grimp.ImportGraph, split: set[str]) -> PackageView:
    """Return a package and its imports; each file of the folders ``split`` is a box."""
    view = PackageView(package)
    box_of: dict[str, str] = {}
    for path in sorted((tree / package).rglob("*.py")):
        place = path.relative_to(tree / package)
        if place.as_posix() == "__main__.py":  # only starts the command
            continue
        name = box_name(tree / package, place, split)
        box = view.boxes.setdefault(name, Box(name, is_folder=(tree / package / name).is_dir()))
        box.files += 1
        box.lines += len(path.read_text(encoding="utf-8").splitlines())
        box_of[_module(package, place)] = name
        view.flat += len(place.parts) == 1 and place.name != "__init__.py"
    for importer, name in box_of.items():
        for imported in sorted(graph.find_modules_directly_imported_by(importer)):
            target = box_of.get(imported)
            other = imported.partition(".")[0]
            if target is None and other != package:
                view.outside[other] = view.outside.get(other, 0) + 1
            elif target is not None and target != name:
                view.imports[name, target] = view.imports.get((name, target), 0) + 1
    return view


def box_name(package: Path, place: Path, split: set[str]) -> str:
    """Return the box of file ``place``, which is relative to ``package``."""
    folder = place.parent
    others = any(path.parent != package / folder for path in (package / folder).rglob("*.py"))
    if others and folder.as_posix() in split:
        return place.with_suffix("").as_posix()
    return folder.as_posix()


def _module(package: str, place: Path) -> str:
    parts = [package, *place.with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _drop_unlinked_inits(view: PackageView) -> None:
    """Drop each ``__init__`` next to folders that neither imports nor is imported."""
    linked = {name for pair in view.imports for name in pair}
    for name in [name for name in view.boxes if name.endswith("__init__")]:
        if name not in linked:
            del view.boxes[name]


def _set_layers(view: PackageView) -> None:
    reach = _reach(view)
    for name, box in view.boxes.items():
        box.cycle = name in reach[name]
    height: dict[str, int] = {}
    for name in sorted(reach, key=lambda name: len(reach[name] - {name})):
        # Boxes of one cycle reach the same boxes, so they share a layer.
        others = [other for other in reach[name] if name not in reach[other]]
        height[name] = 1 + max((height[other] for other in others), default=-1)
    for name, box in view.boxes.items():
        box.layer = height[name]


def _reach(view: PackageView) -> dict[str, set[str]]:
    """Return the boxes that each box imports, directly or through others."""
    below: dict[str, set[str]] = {name: set() for name in view.boxes}
    for importer, imported in view.imports:
        below[importer].add(imported)
    return {name: _reachable(name, below) for name in below}


def _reachable(start: str, below: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(below[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += below[name]
    return found
