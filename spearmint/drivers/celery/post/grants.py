"""What a host needs for a job: its command, environment and files, in one message."""

from __future__ import annotations

import base64
import contextlib
import shlex
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from spearmint.drivers.celery.post.pieces import SMALL, digest_of
from spearmint.drivers.job_setup import check_texts, setup_lines
from spearmint.drivers.queue import SubmitSpec
from spearmint.layout import Layout
from spearmint.trial.environment import (
    DONE_FILE,
    REPORTS_FILE,
    RETRY_S,
    TRIAL_DIR,
)
from spearmint.trial.transport.boxes import data_in, pack_box
from spearmint.trial.transport.inputs import CODE, EXPERIMENT
from spearmint.trial.transport.mailroom import SPEC, STATE

_OF_THE_CONTROLLER = {"PYTHONPATH", TRIAL_DIR, REPORTS_FILE, DONE_FILE, RETRY_S}
_SOON_S = 0.1
_CHANGE = 'cd -- "$2" || exit 1'
_RUN = (
    f'export PYTHONPATH="$2/{CODE}${{PYTHONPATH:+:$PYTHONPATH}}"\n'
    'exec -- "$1" -P -m spearmint.trial.transport.agent'
)


Packed = tuple[dict[str, Any], dict[str, Path]]
"""The message about a job, and the files that its host can fetch by their digests."""


def remote_part(spec: SubmitSpec) -> Mapping[str, Any]:
    """Return what ``job.json`` has for hosts that do not share the experiment's directory.

    Raises:
        InputError: A host could not run it.
    """
    check_texts(spec)
    need = spec.resources
    own = {k: v for k, v in spec.environment.items() if k not in _OF_THE_CONTROLLER}
    lines = []
    if need.venv is not None:
        venv = shlex.quote(str(need.venv))
        lines.append(f'[ -d {venv} ] || {{ echo "$HOSTNAME has no "{venv} >&2; exit 1; }}')
    return {
        "folder": str(spec.folder or ""),
        "done": spec.environment.get(DONE_FILE, ""),
        "script": "\n".join([*lines, *setup_lines(need, _CHANGE), _RUN]),
        "venv": str(need.venv or ""),
        "environment": own,
    }


def open_box(experiment: Path, job: Mapping[str, Any], token: str) -> Path:
    """Pack the files of a job. Raises InputError and OSError."""
    remote = job["remote"]
    return pack_box(
        Layout(experiment).transfer,
        token=token,
        folder=Path(remote["folder"]),
        output=Path(job["output"]),
        done=remote["done"],
        experiment=experiment,
        has_cache=True,
    )


class Digests:
    """The SHA-256 of files that do not change, each calculated once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int, int], str] = {}

    def of(self, path: Path) -> str:
        """Return the SHA-256 of a file."""
        status = path.stat()
        state = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        if state not in self._known:
            self._known[state] = digest_of(path)
        return self._known[state]


def make_grant(job: Mapping[str, Any], box: Path, digests: Digests) -> Packed:
    """Return the message about a job, and the files that its host can fetch by their digests."""
    data = data_in(box)
    paths = [box / name for name in (SPEC, STATE, CODE, EXPERIMENT)] + ([data] if data else [])
    files: dict[str, Any] = {}
    fetched: dict[str, Path] = {}
    for path in paths:
        size = path.stat().st_size
        is_shared = path.name not in (SPEC, STATE)
        digest = digests.of(path)
        about = {"digest": digest, "size": size, "shared": is_shared}
        if size <= SMALL and not is_shared:
            about["inline"] = base64.b64encode(path.read_bytes()).decode()
        else:
            fetched[digest] = path
        files[path.name] = about
    remote = job["remote"]
    grant = {name: job[name] for name in ("label", "gpus", "walltime_s", "fence_s")}
    grant |= {name: remote[name] for name in ("script", "venv", "environment")}
    return {**grant, "files": files, "data": data.name if data else ""}, fetched


class Packing:
    """Packs files of jobs in threads, one at a time, so that no lease waits for gigabytes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def start(self, work: Callable[[], Packed], then: Callable[[], None]) -> Future[Packed]:
        """Start ``work``, and call ``then`` after it."""
        future: Future[Packed] = Future()

        def run() -> None:
            with self._lock:
                try:
                    future.set_result(work())
                except BaseException as error:  # noqa: BLE001 - who waits for it raises it
                    future.set_exception(error)
            with contextlib.suppress(OSError):
                then()

        threading.Thread(target=run, daemon=True).start()
        with contextlib.suppress(Exception):  # as a rule there is little to pack
            future.exception(_SOON_S)
        return future
