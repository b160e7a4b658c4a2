"""Why no worker can run the trials of a search."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spearmint.drivers.celery.post import Post
from spearmint.drivers.queue import Obstacle

GPU = ".gpu"
"""End of the name of the queue for trials that need a GPU."""


def obstacle_of(
    usable: Sequence[Mapping[str, Any]], experiment: Path, base: str, name: str, post: Post
) -> Obstacle | None:
    """Return why none of the workers can run a trial; None if one can.

    Args:
        usable: What the workers of the queue answer.
        experiment: Directory of the experiment.
        base: Name of the queue without the ending for GPUs.
        name: Name of the queue.
        post: Says whether files can be sent.
    """
    start = f"spearmint worker --queue {shlex.quote(base)} --root {{}}"
    here = start.format(shlex.quote(str(experiment)))
    if not usable:
        what = "no worker with a GPU" if name.endswith(GPU) else "no worker"
        fix = f"Start one: {here}"
        if name.endswith(GPU):
            fix += "\nOr rerun with --gpus=0, if the trials need no GPU."
        return Obstacle(reason=f"{what} of queue {base} answers", fix=fix, passes=True)
    roots = sorted({root for slot in usable for root in slot["roots"]})
    is_below = any(experiment.is_relative_to(Path(root)) for root in roots)
    if is_below and not post.is_forced:
        return None
    if any(slot.get("transfers") for slot in usable) and post.can_send:
        fix = "Check the URL of the Redis that carries files, and its memory."
        why = f"files cannot be sent to the workers: {post.trouble}"
        return Obstacle(reason=why, fix=fix, passes=True) if post.trouble else None
    reason = f"{experiment} is not below a --root of a worker: {', '.join(roots)}"
    if post.can_send:
        return Obstacle(
            reason=f"{reason}, and no worker can receive files",
            fix=f"Start the workers with the same key as this search. {post.advice}",
        )
    return Obstacle(reason=reason, fix=f"Start a worker: {here}\n{post.advice}")
