"""Archives for hosts, in addition to the trial: this package and the experiment's files."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path

from spearmint.errors import InputError
from spearmint.formatting import plain
from spearmint.layout import Layout
from spearmint.trial.transport.parcel import Header, write_parcel

CODE, EXPERIMENT = "code.zip", "experiment.zip"
"""Names on the host."""
CONTENT = "content/"
"""Start of the names of the experiment's files in its archive."""

_MOST_BYTES = 2 << 30
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


def experiment_archive(root: Path, directory: Path) -> Path:
    """Return a parcel with the experiment's files; write it again only if a file has changed.

    Files of the search itself, caches and version control are left out. A link that points
    outside of the directory is replaced by its file.

    Raises:
        InputError: The files have more than 2 GiB.
    """
    files = dict(_files(root))
    total = sum(path.stat().st_size for path in files.values())
    if total > _MOST_BYTES:
        raise InputError(
            f"{plain(str(root))} has {total / 2**30:.1f} GiB, too much to send with each trial",
            "Move data to a place that the hosts can read, and name it in the wrapper.",
        )
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        found = path.stat()
        state = f"\0{found.st_size} {found.st_mtime_ns} {found.st_mode}\n"
        digest.update(os.fsencode(name) + state.encode())
    target = directory / f"experiment-{digest.hexdigest()[:16]}.zip"
    if not target.exists():
        write_parcel(target, Header(key="", has_files=True), files)
        _forget_others(target)
    return target


def _forget_others(target: Path) -> None:
    """Delete the earlier archives of the same kind; mailboxes have links to theirs."""
    for path in target.parent.glob(f"{target.name.partition('-')[0]}-*"):
        if path != target:
            with contextlib.suppress(OSError):
                path.unlink()


def _files(root: Path) -> Iterator[tuple[str, Path]]:
    layout = Layout(root)
    own = {layout.lock.parent, layout.jobs, layout.outputs, layout.regions, layout.report}
    own |= {layout.trace, layout.best}
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
