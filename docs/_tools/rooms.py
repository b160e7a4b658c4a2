"""The rooms of the five packages at a commit: folders, files, lines, imports, floors, circles.

A room is a folder. A file next to folders is a room itself if such files are both above and below
these folders, as ``search.py`` and ``errors.py`` of a package are. A floor is an import layer, a
circle an import cycle.
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
PACKAGES = ("spearmint", "starcluster", "starcluster_plugins", "sge_jobs", "pycuda_nn")


@dataclass(slots=True)
class Room:
    """A folder, or a file next to folders.

    Attributes:
        name: Path in its package, such as ``cuda/gemm`` or ``errors``.
        files: Python files in it, its ``__init__`` included.
        floor: 0 for a room without imports; otherwise 1 above the highest room that it imports.
        circle: Whether it imports itself through other rooms.
    """

    name: str
    is_folder: bool
    files: int = 0
    lines: int = 0
    floor: int = 0
    circle: bool = False


@dataclass(slots=True)
class House:
    """One package.

    Attributes:
        rooms: By name.
        imports: Imports of modules, by importing and imported room.
        flat: Python files directly in the package, without its ``__init__``.
        outside: Imports of modules of other packages, by package.
    """

    package: str
    rooms: dict[str, Room] = field(default_factory=dict)
    imports: dict[tuple[str, str], int] = field(default_factory=dict)
    flat: int = 0
    outside: dict[str, int] = field(default_factory=dict)

    @property
    def floors(self) -> int:
        """Number of floors."""
        return 1 + max((room.floor for room in self.rooms.values()), default=-1)

    @property
    def folders(self) -> list[Room]:
        """Rooms that are folders."""
        return [room for room in self.rooms.values() if room.is_folder]


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


def read_houses(commit: str = "") -> list[House]:
    """Return the five packages at ``commit``, or those of the working tree if it is empty."""
    with checkout(commit) as tree:
        sys.path.insert(0, str(tree))
        try:
            graph = grimp.build_graph(*PACKAGES, cache_dir=None)
        finally:
            sys.path.pop(0)
        return [_house(tree, package, graph) for package in PACKAGES]


def _house(tree: Path, package: str, graph: grimp.ImportGraph) -> House:
    house = _divided(tree, package, graph, {"."})
    reach = _reach(house)
    around = {name for name in reach if any(other in reach[name] for other in _inside(house, name))}
    split = {name for name in around if any(name in reach[other] for other in _inside(house, name))}
    house = _divided(tree, package, graph, {".", *split})
    _drop_bare_doors(house)
    _set_floors(house)
    return house


def _inside(house: House, name: str) -> list[str]:
    """Return the rooms that are folders of folder ``name``."""
    return [other for other in house.rooms if other.startswith(f"{name}/")]


def _divided(tree: Path, package: str, graph: grimp.ImportGraph, split: set[str]) -> House:
    """Return a package and its imports; each file of the folders ``split`` is a room."""
    house = House(package)
    room_of: dict[str, str] = {}
    for path in sorted((tree / package).rglob("*.py")):
        place = path.relative_to(tree / package)
        if place.as_posix() == "__main__.py":  # only starts the command
            continue
        name = room_name(tree / package, place, split)
        room = house.rooms.setdefault(name, Room(name, is_folder=(tree / package / name).is_dir()))
        room.files += 1
        room.lines += len(path.read_text(encoding="utf-8").splitlines())
        room_of[_module(package, place)] = name
        house.flat += len(place.parts) == 1 and place.name != "__init__.py"
    for importer, name in room_of.items():
        for imported in sorted(graph.find_modules_directly_imported_by(importer)):
            target = room_of.get(imported)
            other = imported.partition(".")[0]
            if target is None and other != package:
                house.outside[other] = house.outside.get(other, 0) + 1
            elif target is not None and target != name:
                house.imports[name, target] = house.imports.get((name, target), 0) + 1
    return house


def room_name(package: Path, place: Path, split: set[str]) -> str:
    """Return the room of file ``place``, which is relative to ``package``."""
    folder = place.parent
    others = any(path.parent != package / folder for path in (package / folder).rglob("*.py"))
    if others and folder.as_posix() in split:
        return place.with_suffix("").as_posix()
    return folder.as_posix()


def _module(package: str, place: Path) -> str:
    parts = [package, *place.with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _drop_bare_doors(house: House) -> None:
    """Drop each ``__init__`` next to folders that neither imports nor is imported."""
    linked = {name for pair in house.imports for name in pair}
    for name in [name for name in house.rooms if name.endswith("__init__")]:
        if name not in linked:
            del house.rooms[name]


def _set_floors(house: House) -> None:
    reach = _reach(house)
    for name, room in house.rooms.items():
        room.circle = name in reach[name]
    height: dict[str, int] = {}
    for name in sorted(reach, key=lambda name: len(reach[name] - {name})):
        # Rooms of one circle reach the same rooms, so they share a floor.
        others = [other for other in reach[name] if name not in reach[other]]
        height[name] = 1 + max((height[other] for other in others), default=-1)
    for name, room in house.rooms.items():
        room.floor = height[name]


def _reach(house: House) -> dict[str, set[str]]:
    """Return the rooms that each room imports, directly or through others."""
    below: dict[str, set[str]] = {name: set() for name in house.rooms}
    for importer, imported in house.imports:
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
