"""Archives for hosts, in addition to the trial: this package and the experiment's files."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from spearmint.errors import InputError
from spearmint.formatting import plain
from spearmint.layout import Layout
from spearmint.trial.transport.cache import MOST_BYTES, data_name
from spearmint.trial.transport.packing import write_parcel
from spearmint.trial.transport.parcel import Header

CODE, EXPERIMENT = "code.zip", "experiment.zip"
"""Names on the host."""
CONTENT = "content/"
"""Start of the names of the experiment's files in its archive."""

_MOST_BYTES = 2 << 30  # of what is sent to each trial
_LARGE = 64 << 10
_MOST_SMALL = 1 << 20  # of the files of a folder
_SKIPPED = {"__pycache__", ".git", ".ipynb_checkpoints", ".mypy_cache", ".venv"}


def code_archive(directory: Path) -> Path:
    """Return a ZIP archive of this package's modules that Python can import; write it once."""
    package = Path(__file__).parents[2]
    roots = (package, package.parent / "starmint")
    files = sorted(path for root in roots for path in root.rglob("*.py"))
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.relative_to(package.parent)}\n".encode() + path.read_bytes())
    target = directory / f"code-{digest.hexdigest()[:16]}.zip"
    if not target.exists():
        part = target.with_suffix(f".{os.getpid()}")
        with zipfile.ZipFile(part, "w") as archive:
            for path in files:
                name = path.relative_to(package.parent).as_posix()
                archive.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
        part.replace(target)
        _forget_others(target)
    return target


def experiment_archives(root: Path, directory: Path, *, has_cache: bool) -> dict[str, Path]:
    """Return parcels with the experiment's files; write one again only if its files have changed.

    Files of the search itself, caches and version control are left out. A link that points
    outside of the directory is replaced by its file.

    Args:
        root: Directory of the experiment.
        directory: Where to write the parcels.
        has_cache: Whether large files are data, which hosts fetch when their cache lacks it.

    Returns:
        By name on the host: :data:`EXPERIMENT`, and the name of the data if there is any.

    Raises:
        InputError: The files are too large to send.
    """
    files = dict(_files(root))
    sizes = {name: path.stat().st_size for name, path in files.items()}
    data = _large(sizes) if has_cache else set()
    _check_size(root, sum(size for name, size in sizes.items() if name not in data), _MOST_BYTES)
    _check_size(root, sum(sizes[name] for name in data), MOST_BYTES)
    small = {name: path for name, path in files.items() if name not in data}
    archives = {EXPERIMENT: _archive("experiment", small, directory)}
    if data:
        path = _archive("data", {name: files[name] for name in data}, directory)
        archives[path.name.partition("_")[2]] = path
    else:
        _forget_others(directory / "data_")
    return archives


def _large(sizes: Mapping[str, int]) -> set[str]:
    """Return the names of files that are data: large ones, and small ones in folders of many."""
    large = {name for name, size in sizes.items() if size >= _LARGE}
    folders: dict[str, set[str]] = {}
    for name in sizes.keys() - large:
        folders.setdefault(name.rpartition("/")[0], set()).add(name)
    for names in folders.values():
        if sum(sizes[name] for name in names) > _MOST_SMALL:
            large |= names
    return large


def _check_size(root: Path, total: int, most: int) -> None:
    if total > most:
        raise InputError(
            f"{plain(str(root))} has {total / 2**30:.1f} GiB, too much to send "
            f"(at most {most >> 30} GiB)",
            "Move data to a place that the hosts can read, and name it in the wrapper.",
        )


def _archive(kind: str, files: Mapping[str, Path], directory: Path) -> Path:
    """Return ``KIND-STATE_NAME``, where NAME has the checksum of data."""
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        status = path.stat()
        state = f"\0{status.st_size} {status.st_mtime_ns} {status.st_mode}\n"
        digest.update(os.fsencode(name) + state.encode())
    start = f"{kind}-{digest.hexdigest()[:16]}_"
    if found := next(directory.glob(f"{start}*.zip"), None):
        return found
    part = directory / f"{start}new"
    method = zipfile.ZIP_STORED if kind == "data" else zipfile.ZIP_DEFLATED
    write_parcel(part, Header(key="", has_files=True), files, method=method)
    target = directory / (start + (data_name(part) if kind == "data" else EXPERIMENT))
    part.replace(target)
    _forget_others(target)
    return target


def _forget_others(target: Path) -> None:
    """Delete the earlier archives of the same kind; mailboxes have links to theirs."""
    for path in target.parent.glob(f"{re.split('[-_]', target.name)[0]}-*"):
        if path != target:
            with contextlib.suppress(OSError):
                path.unlink()


def _files(root: Path) -> Iterator[tuple[str, Path]]:
    layout = Layout(root)
    own = {layout.lock.parent, layout.jobs, layout.outputs, layout.regions, layout.report}
    own |= {layout.batches, layout.trace, layout.best}
    above: dict[Path, frozenset[tuple[int, int]]] = {}  # device and inode of a folder's parents
    for here, folders, names in os.walk(root, followlinks=True):
        at = Path(here)
        status = at.stat()
        me, parents = (status.st_dev, status.st_ino), above.pop(at, frozenset())
        if me in parents:
            folders.clear()  # a link to a folder that contains it has no end
            continue
        folders[:] = [name for name in folders if _is_sent(at / name, own)]
        above |= {at / name: parents | {me} for name in folders}
        for name in names:
            path = at / name
            is_database = name.startswith(layout.database.name) and at == root
            with contextlib.suppress(OSError):
                if not is_database and path not in own and stat.S_ISREG(path.stat().st_mode):
                    yield CONTENT + path.relative_to(root).as_posix(), path.resolve()


def _is_sent(folder: Path, own: set[Path]) -> bool:
    return folder not in own and folder.name not in _SKIPPED
