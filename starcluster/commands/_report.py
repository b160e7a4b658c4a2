"""How commands that change a cluster print their progress and their result."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

import click

from starcluster.cluster.lifecycle import ClusterLifecycle
from starcluster.cluster.operation import Outcome
from starcluster.errors import SetupError
from starcluster.model import is_master


def progress() -> Callable[[str, str], None]:
    """Return what prints each step of each node with the seconds since now."""
    began, lock = time.monotonic(), threading.Lock()

    def say(alias: str, what: str) -> None:
        with lock:
            name = f"{alias}: " if alias else ""
            click.echo(f"{time.monotonic() - began:6.1f} s  {name}{what}", err=True)

    return say


def finish(tag: str, lifecycle: ClusterLifecycle, outcome: Outcome, ready: str) -> None:
    """Print how it ended. Raises SetupError where nodes failed."""
    if outcome.failed:
        fix = lifecycle.describe_running()
        if outcome.ready and not any(map(is_master, outcome.failed)):
            names = ",".join(sorted(outcome.failed))
            fix += f"\nOr go on without: starcluster removenode -a {names} {tag}"
        raise SetupError(failure_text(outcome.failed, len(outcome.ready)), fix)
    click.echo(
        f"Cluster {tag} is ready, {len(outcome.ready)} nodes. {ready}".replace(", 0 nodes", "")
    )


def failure_text(failed: Mapping[str, str], ready: int) -> str:
    """Return why nodes failed, one a line."""
    count = len(failed)
    lines = [f"{count} of {count + ready} nodes failed"]
    return "\n".join(lines + [f"  {alias}: {why}" for alias, why in sorted(failed.items())])
