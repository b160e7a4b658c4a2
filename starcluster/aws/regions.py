"""Ask all regions concurrently; a region that does not answer does not delay the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from starcluster.errors import StarClusterError

T = TypeVar("T")
REGION_S = 30.0
"""Timeout in seconds for the answers of all regions."""


def ask_regions(
    names: Iterable[str], ask: Callable[[str], T], *, within_s: float = REGION_S
) -> tuple[dict[str, T], dict[str, str]]:
    """Return the answer of each region by name, and why the other regions have none."""
    answers: dict[str, T] = {}
    errors: dict[str, str] = {}

    def body(name: str) -> None:
        try:
            answers[name] = ask(name)
        except StarClusterError as error:
            errors[name] = error.what

    threads = {name: threading.Thread(target=body, args=(name,), daemon=True) for name in names}
    for thread in threads.values():
        thread.start()
    deadline = time.monotonic() + within_s
    for thread in threads.values():
        thread.join(max(deadline - time.monotonic(), 0))
    late = f"no answer within {within_s:g} s"
    answered = {name: answers[name] for name in threads if name in answers}
    return answered, {name: errors.get(name, late) for name in threads if name not in answered}
