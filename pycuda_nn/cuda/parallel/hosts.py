"""Meet the processes of other hosts in a folder that all hosts share; this needs no GPU."""

from __future__ import annotations

import base64
import contextlib
import json
import logging
import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pycuda_nn.cuda.options import CudaOptions
from pycuda_nn.cuda.parallel.presence import Presence
from pycuda_nn.errors import ConfigError, DeviceError

_LOG = logging.getLogger("pycuda_nn")

_LIMIT_S = 600.0  # for all hosts to come
_PAUSE_S = 0.2
_START = "start.json"
_NEW_FOLDER = "Give all hosts a new, empty folder."


@dataclass(frozen=True, kw_only=True)
class World:
    """The ranks of a training on several hosts.

    Attributes:
        size: Ranks of all hosts.
        first: First rank of this host.
        unique_id: Bytes with which the ranks find each other.
        presence: Sees which host is lost.
    """

    size: int
    first: int
    unique_id: bytes
    presence: Presence | None = field(default=None, compare=False)


def meet(options: CudaOptions, gpus: int, new_id: Callable[[], bytes]) -> World:
    """Return the ranks of all hosts, after all of them have come to ``options.meet``.

    Args:
        options: Number of hosts, number of this host, and the folder.
        gpus: GPUs of this host.
        new_id: Called on the first host: returns the bytes for all ranks.

    Raises:
        ConfigError: The folder is not private, was used before, or is of another number of hosts.
        DeviceError: A host did not come.
    """
    folder = Path(options.meet)
    _check_private(folder)
    files = {host: folder / f"host-{host}" for host in range(options.hosts)}
    mine = files.pop(options.host)
    presence = _claim(folder, options.host, mine)
    try:
        world = _met(folder, options, gpus, new_id)
    except BaseException:
        presence.leave(done=False)
        raise
    presence.watch(files)
    return replace(world, presence=presence)


def _met(folder: Path, options: CudaOptions, gpus: int, new_id: Callable[[], bytes]) -> World:
    own = {"gpus": gpus, "hosts": options.hosts}
    _write(folder / f"host-{options.host}.json", own)
    _LOG.info("waiting for %d hosts in %s", options.hosts, folder)
    start = folder / _START
    if options.host == 0:
        names = [folder / f"host-{host}.json" for host in range(options.hosts)]
        counts = [_gpus_of(name, options.hosts) for name in names]
        _write(start, {"gpus": counts, "id": base64.b64encode(new_id()).decode()})
    return _world(start, options)


def _claim(folder: Path, host: int, mine: Path) -> Presence:
    """Take the number of this host; only one process can, also of two at the same time."""
    try:
        mine.touch(mode=0o600, exist_ok=False)
        return Presence(mine)
    except FileExistsError as error:
        raise ConfigError(
            f"--meet {folder}: host {host} was here before",
            "Give all hosts a new, empty folder for each start, and each its own --host.",
        ) from error
    except OSError as error:
        raise DeviceError(f"cannot write in {folder}: {error.strerror}") from error


def _gpus_of(path: Path, hosts: int) -> int:
    """Return the GPUs of a host, after it has come."""
    found = _wait_for(path)
    with _reading(path):
        gpus, wanted = int(found["gpus"]), int(found["hosts"])
    if gpus < 1:
        raise ConfigError(f"{path} is damaged: {gpus} GPUs", _NEW_FOLDER)
    _check_hosts(path, wanted, hosts)
    return gpus


def _world(path: Path, options: CudaOptions) -> World:
    """Return the ranks in ``path``, after the first host has written it."""
    start = _wait_for(path)
    with _reading(path):
        counts = [int(count) for count in start["gpus"]]
        unique_id = base64.b64decode(start["id"], validate=True)
    _check_hosts(path, len(counts), options.hosts)
    return World(size=sum(counts), first=sum(counts[: options.host]), unique_id=unique_id)


def _check_hosts(path: Path, found: int, hosts: int) -> None:
    if found != hosts:
        raise ConfigError(
            f"{path} is of {found} hosts, but --hosts is {hosts}",
            "Give all hosts the same --hosts, and a new, empty folder.",
        )


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Raise ConfigError for anything that a host does not write."""
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:  # also of base64
        raise ConfigError(f"{path} is damaged: {error!r}", _NEW_FOLDER) from error


def _check_private(folder: Path) -> None:
    """Raise ConfigError if another user could write the folder: whoever can, joins the training."""
    try:
        facts = folder.stat()
    except OSError as error:
        raise ConfigError(
            f"--meet {folder}: {error.strerror}",
            "Create it on a file system that all hosts share: mktemp -d -p DIR",
        ) from error
    if not stat.S_ISDIR(facts.st_mode):
        raise ConfigError(f"--meet {folder} is not a folder")
    if facts.st_uid != os.getuid() or facts.st_mode & 0o077:
        raise ConfigError(
            f"--meet {folder}: other users can open it", f"Make it private: chmod 700 {folder}"
        )


def _write(path: Path, value: object) -> None:
    """Write ``value`` so that other hosts find all of it or nothing."""
    beside = path.with_suffix(".part")
    try:
        beside.write_text(json.dumps(value), encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        raise DeviceError(f"cannot write {path}: {error.strerror}") from error


def _wait_for(path: Path) -> Any:
    began = time.monotonic()
    while True:
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            raise DeviceError(f"cannot read {path}: {error}") from error
        if time.monotonic() - began > _LIMIT_S:
            raise DeviceError(
                f"{path.stem} did not come within {_LIMIT_S:.0f} s",
                f"Check the output of the other hosts, and that they see {path.parent}.",
            )
        time.sleep(_PAUSE_S)
