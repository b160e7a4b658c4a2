"""Print the progress and the result of commands that change a cluster."""

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
    """Return a function that prints a step of a node with the seconds since now."""
    began, lock = time.monotonic(), threading.Lock()

    def say(alias: str, what: str) -> None:
        with lock:
            name = f"{alias}: " if alias else ""
            click.echo(f"{time.monotonic() - began:6.1f} s  {name}{what}", err=True)

    return say


def finish(tag: str, lifecycle: ClusterLifecycle, outcome: Outcome, ready: str) -> None:
    """Print the result. Raises SetupError if nodes failed."""
    if outcome.failed:
        fix = lifecycle.describe_running()
        left = sorted(outcome.failed.keys() - lifecycle.gone)
        if outcome.ready and left and not any(map(is_master, outcome.failed)):
            names = ",".join(left)
            fix += f"\nOr continue without them: starcluster removenode -a {names} {tag}"
        raise SetupError(failure_text(outcome.failed, len(outcome.ready)), fix)
    click.echo(
        f"Cluster {tag} is ready, {len(outcome.ready)} nodes. {ready}".replace(", 0 nodes", "")
    )


def failure_text(failed: Mapping[str, str], ready: int) -> str:
    """Return the reason of each failed node, one per line."""
    count = len(failed)
    lines = [f"{count} of {count + ready} nodes failed"]
    return "\n".join(lines + [f"  {alias}: {why}" for alias, why in sorted(failed.items())])
