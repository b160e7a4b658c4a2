"""Which directory a search belongs to, and which storage holds it."""

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
from spearmint.store.sqlite import sqlite_url
from spearmint.store.study import Study

_SECRETS = ("password", "passwd", "pwd", "sslpassword")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """Content of ``.spearmint/experiment.json``.

    Attributes:
        name: The experiment.
        token: Random; a study in a shared storage carries it too.
        root, host: Where the directory was when this was written.
        storage: URL without its secrets; None for the SQLite file in the directory.
        secret: Whether secrets were left out of ``storage``.
        driver: Who runs its trials.
        regions: Regions that were ever searched here.
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
        """Return what a study in a shared storage carries."""
        return {"token": self.token, "root": self.root, "host": self.host}


def read_ownership(layout: Layout) -> Ownership | None:
    """Return what is known of the directory; None before its first search."""
    known = read_json(layout.experiment)
    try:
        if known is None:
            return None
        return Ownership(**{**known, "regions": tuple(known.get("regions", ()))})
    except TypeError:
        return None


def storage_url(layout: Layout, given: str | None) -> str:
    """Return the storage named on the command line, else that of the earlier runs, else SQLite.

    Raises:
        InputError: Another one than that of the earlier runs, or its password is missing.
    """
    known = read_ownership(layout)
    if known is None:
        return _absolute(given) if given else sqlite_url(layout.database)
    stored = known.storage or sqlite_url(layout.database)
    if given is None:
        if known.secret:
            raise InputError(
                f"the search in {layout.root} is stored at {stored}, whose password is not kept",
                "Give the URL again: SPEARMINT_STORAGE=URL spearmint ...",
            )
        return stored
    if _without_secrets(_absolute(given))[0] != stored:
        raise InputError(
            f"the search in {layout.root} is stored at {stored}, not at the given storage",
            f"Leave out --storage, or start over: {next_command('cleanup', layout.root)}",
        )
    return _absolute(given)


def check_directory(layout: Layout, experiment: Experiment) -> None:
    """Check that the directory has no search yet, or that of ``experiment``; nothing is stored.

    Raises:
        InputError: It holds another experiment, or one with regions where this has none.
    """
    known, here = read_ownership(layout), layout.root
    if known is None:
        return
    if bool(known.regions) != bool(experiment.regions):
        raise InputError(
            f"the search in {here} was begun {'with' if known.regions else 'without'} regions",
            f"Keep that, or start over: {next_command('cleanup', here)}",
        )
    if known.name != experiment.name:
        raise InputError(
            f"{here} holds the search of experiment {known.name!r}, not {experiment.name!r}",
            "Give each experiment a directory of its own, "
            f"or delete the old search: {next_command('cleanup', here)}",
        )


def take_ownership(layout: Layout, studies: Sequence[Study], *, driver: str) -> None:
    """Make the directory the owner of ``studies``, one a region, or check that it is.

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
            mine = replace(mine, token=owner["token"])  # somebody deleted .spearmint
        _check_owner(owner, mine)
    if mine != known:
        write_json(layout.experiment, asdict(mine), durable=True)
    for study, owner in zip(studies, owners, strict=True):
        if not is_default and owner != mine.mark():
            study.set_owner(mine.mark())


def _check_owner(owner: dict[str, str] | None, mine: Ownership) -> None:
    """Raise InputError when a study belongs to another directory."""
    name, here = mine.name, mine.root
    if owner is not None and owner["token"] != mine.token:
        raise InputError(
            f"experiment {name!r} in this storage is run from {owner['root']} on {owner['host']}",
            "Run it there, or give this one another name in config.pb.",
        )
    if owner is not None and owner["root"] != here and Path(owner["root"]).is_dir():
        raise InputError(
            f"{here} is a copy of {owner['root']}, which runs {name!r} in the same storage",
            "Run it there, or give this one another name in config.pb and remove its .spearmint.",
        )


def _is_same_place(owner: dict[str, str], mine: Ownership) -> bool:
    return (owner["root"], owner["host"]) == (mine.root, mine.host)


def _parse(url: str) -> URL:
    try:
        return make_url(url)
    except (ArgumentError, ValueError) as error:  # the latter for a port
        raise InputError(
            f"the storage cannot be used: {error}",
            "Expected a URL such as sqlite:////path/to/file.db or postgresql://HOST/DATABASE.",
        ) from None


def _absolute(url: str) -> str:
    """Return ``url``; an SQLite file named from the working directory, from the root."""
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
