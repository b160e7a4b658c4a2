"""Read earlier searches to learn from, also those of other users; nothing is written.

Only numbers, names of variables and texts of categories are read, straight from the tables of
Optuna.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from sqlalchemy import Connection, create_engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from spearmint.errors import InputError, did_you_mean, reason_of
from spearmint.layout import Layout
from spearmint.store.earlier.files import is_database, reading_file
from spearmint.store.earlier.trials import Rows, read_names, read_search
from spearmint.store.owner import has_secret, read_ownership
from spearmint.store.sql.sqlite import file_of
from spearmint.transfer.earlier import EarlierSearch
from spearmint.transfer.match import printable

MOST_SEARCHES = 20
"""Maximum number of earlier searches; each proposal asks the models of the useful ones."""
# Whatever reading a file of another user can raise: its JSON can have any types and any depth, and
# a home directory can be missing.
_UNREADABLE = (
    SQLAlchemyError,
    sqlite3.Error,
    OSError,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    ArithmeticError,
    RuntimeError,
)
GENERATIONS = "generations"
"""Name of the directory that stands for the last generation of a search."""
REGIONS = "regions"
"""Instead of a directory: the other regions of the search. ``./regions`` is a directory."""
_LONGEST_REASON = 200
_ITSELF = ("it is the directory of this search itself", "Name another directory.")


def earlier_searches(sources: Sequence[str], directory: Path) -> list[EarlierSearch]:
    """Return the earlier searches in all of ``sources``.

    Args:
        sources: Directories or URLs, see ``read_earlier``; "regions" is ignored.
        directory: Directory of the search that learns.

    Raises:
        InputError: One of them cannot be read, or there are too many.
    """
    sources = [source for source in sources if source != REGIONS]
    once = {_place(source): source for source in reversed(sources)}
    found = [each for source in reversed(once.values()) for each in read_earlier(source, directory)]
    others = sum(not each.is_own for each in found)
    if others > MOST_SEARCHES:
        raise _too_many(others)
    return found


def learns_from_regions(sources: Sequence[str]) -> bool:
    """Return whether the regions of the search that learns learn from each other."""
    return REGIONS in sources


def _place(source: str) -> str:
    """Return a text that is the same for two ways to write the path of an earlier search."""
    if "://" not in source:
        with suppress(OSError, RuntimeError, ValueError):  # not a path: reading it is an error
            place, study = _split(source)
            return f"{Path(place).expanduser().resolve()}#{study or ''}"
    return source


def read_earlier(source: str, here: Path) -> list[EarlierSearch]:
    """Return the searches in ``source``, one for each region.

    Args:
        source: Directory of a search, its config.pb, an SQLite file, or the URL of a storage. A
            study of several is named by ``#NAME`` at the end.
        here: Directory of the search that learns.

    Raises:
        InputError: There is nothing to learn from, or it cannot be read.
    """
    if not source.strip():
        raise InputError("learn_from has an empty name", "Name the directory of a search, or none.")
    try:
        place, study = _split(source)
        if "://" in place:
            name = _without_password(place)
            _require_other(file_of(place), study, here)
            return _read_url(place, study, name)
        path = Path(place).expanduser()
        _require_other(path, study, here)
        return _read_path(path, study, here)
    except InputError as error:
        what = f"cannot learn from {_without_password(source)}: {error.what}"
        raise InputError(what, error.fix) from None
    except PermissionError as error:
        what = f"permission denied: {printable(str(error.filename or source), _LONGEST_REASON)}"
        raise InputError(
            f"cannot learn from {_without_password(source)}: {what}",
            "Ask its owner to let you read it, for example: chmod -R go+rX DIR",
        ) from None
    except _UNREADABLE as error:
        text = _reason(getattr(error, "orig", None) or error)
        raise InputError(f"cannot learn from {_without_password(source)}: {text}") from None


def _reason(error: BaseException) -> str:
    """Return why something cannot be read, in one line without control characters."""
    if isinstance(error, OSError):
        return reason_of(error)
    first = (str(error).splitlines() or [type(error).__name__])[0]
    return printable(first, _LONGEST_REASON)


def _require_other(file: Path | None, study: str | None, here: Path) -> None:
    """Raise InputError if ``file`` has the trials of the search that learns."""
    layout = Layout(here.resolve())
    if file is None or file.resolve() != layout.database:
        return
    known = read_ownership(layout)
    if study is None or (known is not None and study.partition("@")[0] == known.name):
        raise InputError(*_ITSELF)


def _split(source: str) -> tuple[str, str | None]:
    """Return the place, and the study that follows ``#``, if any."""
    path = Path(source)
    if "#" not in source or path.name == GENERATIONS or path.exists():
        return source, None
    place, _, study = source.rpartition("#")
    return place, study


def _read_path(path: Path, study: str | None, here: Path) -> list[EarlierSearch]:
    """Return the searches in a directory or file."""
    name = str(path)
    if path.name == GENERATIONS:
        is_own = path.parent.resolve() == here.resolve()
        if is_own or path.is_dir():
            return _read_generation(path, study, here, is_own=is_own)
    if not path.exists():
        raise InputError("no such file or directory", "Name the directory of an earlier search.")
    if path.is_file() and not is_database(path):
        path = path.parent
    if path.is_file():
        with reading_file(path) as connection:
            rows = Rows(connection)
            return _searches(rows, name, _chosen(_names(rows), study))
    return _read_folder(path, study, here)


def _read_generation(
    path: Path, study: str | None, here: Path, *, is_own: bool
) -> list[EarlierSearch]:
    """Return the searches of the last generation in ``path``; the own search can have none yet."""
    known = [each for each in path.glob("*/") if each.name.isdecimal()]
    if not known and is_own:
        return []
    if not known:
        raise InputError("no generation there", "Name the directory of a search.")
    found = _read_folder(max(known, key=lambda each: int(each.name)), study, here)
    return [replace(each, is_own=is_own) for each in found]


def _read_folder(path: Path, study: str | None, here: Path) -> list[EarlierSearch]:
    """Return the searches in the directory of a search."""
    name = str(path)
    layout = Layout(path.resolve())
    if layout.root == here.resolve():
        raise InputError(*_ITSELF)
    known = read_ownership(layout) if layout.experiment.is_file() else None
    if known is not None and known.storage:
        _require_trusted(layout.experiment, known.storage)
        if known.secret:
            raise InputError(
                f"its storage {known.storage} requires a password",
                "Give the URL of the storage, with #STUDY at the end, instead of the directory.",
            )
        url, first = known.storage, known.name
        return _read_url(url, study, name, owned=first)
    if not layout.database.is_file():
        raise InputError("no search there", "Name the directory of a search that has trials.")
    with reading_file(layout.database) as connection:
        rows = Rows(connection)
        names = _names(rows)
        chosen = (
            _chosen(names, study)
            if study is not None
            else _owned(names, known.name if known else None)
        )
        return _searches(rows, name, chosen)


def _require_trusted(path: Path, url: str) -> None:
    """Raise InputError if another user could have written which server to connect to."""
    info = path.stat()
    if info.st_uid not in (os.getuid(), 0) or info.st_mode & 0o002:
        raise InputError(
            f"another user can have written its storage {printable(url, _LONGEST_REASON)}",
            "If you trust it, give the URL with #STUDY at the end instead of the directory.",
        )


def _read_url(
    url: str, study: str | None, name: str, *, owned: str | None = None
) -> list[EarlierSearch]:
    """Return ``study`` of a storage, or those of the experiment ``owned``, or the only one."""
    file = file_of(url)
    if file is not None and not file.is_file():
        raise InputError(f"no such file: {file}")
    with reading_file(file) if file is not None else _connected(url) as connection:
        rows = Rows(connection)
        names = _names(rows)
        if not owned or study is not None:
            return _searches(rows, name, _chosen(names, study))
        if not (chosen := _of_experiment(names, owned)):
            raise InputError(
                f"its storage {url} has no study of experiment {owned!r}",
                "Name the directory of a search that has trials.",
            )
        return _searches(rows, name, chosen)


@contextmanager
def _connected(url: str) -> Iterator[Connection]:
    """Yield a connection to a server."""
    try:
        engine = create_engine(url, poolclass=NullPool)
    except ImportError as error:
        raise InputError(f"missing database driver: {error}") from None
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def _names(rows: Rows) -> list[str]:
    """Return the names of all studies."""
    names = read_names(rows)
    if not names:
        raise InputError("the database has no search", "Name another directory.")
    return names


def _chosen(names: Sequence[str], study: str | None) -> list[str]:
    """Return the study ``study`` of a storage, or the only one."""
    if study is None and len(names) == 1:
        return list(names)
    known = list(map(printable, names))
    listed = f"The studies are: {', '.join(known)}."
    if study is None:
        raise InputError("the storage has several studies", f"Add #STUDY at the end. {listed}")
    if study not in names:
        raise InputError(f"no study {study!r}", f"{listed} {did_you_mean(study, known)}".rstrip())
    return [study]


def _owned(names: Sequence[str], experiment: str | None) -> list[str]:
    """Return the studies of ``experiment`` and of its regions; all if it is not known."""
    if experiment is None:
        return list(names)
    return _of_experiment(names, experiment) or list(names)


def _of_experiment(names: Sequence[str], experiment: str) -> list[str]:
    return [n for n in names if n == experiment or n.startswith(f"{experiment}@")]


def _searches(rows: Rows, place: str, names: Sequence[str]) -> list[EarlierSearch]:
    if len(names) > MOST_SEARCHES:
        raise _too_many(len(names))
    if len(names) == 1:
        return [read_search(rows, names[0], place)]
    return [read_search(rows, n, f"{place} ({printable(n.rpartition('@')[2])})") for n in names]


def _too_many(n: int) -> InputError:
    return InputError(
        f"{n} earlier searches to learn from; the limit is {MOST_SEARCHES}",
        "Name fewer. #STUDY at the end of a directory selects one of its regions.",
    )


def _without_password(url: str) -> str:
    """Return ``url``; of one with a password, only the part that has none."""
    if "://" not in url or not has_secret(url):
        return url
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}"
