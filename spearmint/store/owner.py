"""The directory that owns a search, and the storage of its trials."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from spearmint.errors import InputError, next_command
from spearmint.layout import Layout, read_json, write_json
from spearmint.model import Experiment
from spearmint.store.sql.sqlite import sqlite_url
from spearmint.store.study import Study

_SECRETS = ("password", "passwd", "pwd", "sslpassword")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """Content of ``.spearmint/experiment.json``.

    Attributes:
        name: Name of the experiment.
        token: Random text, which is also stored in each study of a shared storage.
        root, host: Path and host of the directory when this was written.
        storage: URL without secrets; None for the SQLite file in the directory.
        secret: Whether secrets were removed from ``storage``.
        driver: Name of the driver that runs the trials.
        regions: Regions of all runs in this directory.
    """

    name: str
    token: str
    root: str
    host: str
    storage: str | None = None
    secret: bool = False
    driver: str = "local"
    regions: tuple[str, ...] = ()

    def mark(self) -> dict[str, str]:
        """Return the attributes that mark a study in a shared storage."""
        return {"token": self.token, "root": self.root, "host": self.host}


def read_ownership(layout: Layout) -> Ownership | None:
    """Return the stored ownership of the directory; None before its first search."""
    known = read_json(layout.experiment)
    try:
        if known is None:
            return None
        return Ownership(**{**known, "regions": tuple(known.get("regions", ()))})
    except TypeError:
        return None


def storage_url(layout: Layout, given: str | None) -> str:
    """Return the storage of the command line, or else of earlier runs, or else SQLite.

    Raises:
        InputError: Earlier runs used another storage, or the password is missing.
    """
    known = read_ownership(layout)
    if known is None:
        return _absolute(given) if given else sqlite_url(layout.database)
    stored = known.storage or sqlite_url(layout.database)
    if given is None:
        if known.secret:
            raise InputError(
                f"the storage {stored} of the search in {layout.root} requires a password",
                "Passwords are not stored. Set the URL: SPEARMINT_STORAGE=URL spearmint ...",
            )
        return stored
    wanted, bare = _without_secrets(_absolute(given))[0], _without_secrets(stored)[0]
    if wanted != bare:
        raise InputError(
            f"the search in {layout.root} is stored at {bare}, not at {wanted}",
            f"Leave out --storage, or delete the search: {next_command('cleanup', layout.root)}",
        )
    return _absolute(given)


def has_secret(url: str) -> bool:
    """Return whether a storage URL contains a password. Raises InputError if it is not a URL."""
    return _without_secrets(url)[1]


def check_directory(layout: Layout, experiment: Experiment) -> None:
    """Check that the directory has no search, or the search of ``experiment``. Writes nothing.

    Raises:
        InputError: The directory has another experiment, or only one of the two has regions.
    """
    known, here = read_ownership(layout), layout.root
    if known is None:
        return
    if bool(known.regions) != bool(experiment.regions):
        raise InputError(
            f"the search in {here} was started {'with' if known.regions else 'without'} regions",
            f"Undo the change, or delete the search: {next_command('cleanup', here)}",
        )
    if known.name != experiment.name:
        raise InputError(
            f"{here} has the search of experiment {known.name!r}, not {experiment.name!r}",
            "Use a separate directory for each experiment, "
            f"or delete the old search: {next_command('cleanup', here)}",
        )


def take_ownership(layout: Layout, studies: Sequence[Study], *, driver: str) -> None:
    """Make the directory the owner of ``studies``, or check that it is the owner.

    Raises:
        InputError: A study belongs to another directory.
    """
    first = studies[0]
    name, here = first.experiment.name, str(layout.root)
    is_default = first.url == sqlite_url(layout.database)
    storage, secret = (None, False) if is_default else _without_secrets(first.url)
    known = read_ownership(layout)
    regions = [study.experiment.region for study in studies if study.experiment.region]
    before = known.regions if known else ()
    mine = Ownership(
        name=name,
        token=known.token if known else uuid.uuid4().hex,
        root=here,
        host=socket.gethostname(),
        storage=storage,
        secret=secret,
        driver=driver,
        regions=tuple(dict.fromkeys((*before, *regions))),
    )
    owners = [None if is_default else study.owner for study in studies]
    for owner in owners:
        if owner is not None and known is None and _is_same_place(owner, mine):
            mine = replace(mine, token=owner["token"])  # .spearmint was deleted
        _check_owner(owner, mine)
    if mine != known:
        write_json(layout.experiment, asdict(mine), durable=True)
    for study, owner in zip(studies, owners, strict=True):
        if not is_default and owner != mine.mark():
            study.set_owner(mine.mark())


def _check_owner(owner: dict[str, str] | None, mine: Ownership) -> None:
    """Raise InputError if a study belongs to another directory."""
    name, here = mine.name, mine.root
    if owner is not None and owner["token"] != mine.token:
        raise InputError(
            f"experiment {name!r} in this storage belongs to {owner['root']} on {owner['host']}",
            "Run it there, or use another name in this config.pb.",
        )
    if owner is not None and owner["root"] != here and Path(owner["root"]).is_dir():
        raise InputError(
            f"{here} is a copy of {owner['root']}, which runs {name!r} in the same storage",
            "Run it there, or use another name in this config.pb and delete the copied .spearmint.",
        )


def _is_same_place(owner: dict[str, str], mine: Ownership) -> bool:
    return (owner["root"], owner["host"]) == (mine.root, mine.host)


def _parse(url: str) -> URL:
    try:
        return make_url(url)
    except (ArgumentError, ValueError) as error:  # ValueError: the port
        raise InputError(
            f"cannot use the storage: {error}",
            "Write a URL such as sqlite:////path/to/file.db or postgresql://HOST/DATABASE.",
        ) from None


def _absolute(url: str) -> str:
    """Return ``url``; the path of an SQLite file becomes absolute."""
    parsed = _parse(url)
    if parsed.get_backend_name() != "sqlite" or not parsed.database:
        return url
    return sqlite_url(Path(parsed.database).absolute())


def _without_secrets(url: str) -> tuple[str, bool]:
    parsed = _parse(url)
    kept = {key: value for key, value in parsed.query.items() if key.lower() not in _SECRETS}
    secret = parsed.password is not None or len(kept) < len(parsed.query)
    bare = parsed._replace(password=None).set(query=kept)
    return bare.render_as_string(hide_password=False), secret
