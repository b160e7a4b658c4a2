"""Trials as functions of ``spearmint.executor``."""

from __future__ import annotations

import sys
from functools import partial

import spearmint
from benchmarks.peers.queue_trial import arguments, trial


def main() -> None:
    """Run the trials."""
    folder, trials, seconds, _ = arguments()
    run = partial(trial, str(folder / "records"))
    with spearmint.executor(sys.argv[5], directory=folder / "tasks", gpus=0) as executor:
        list(executor.map(run, [seconds] * trials))


if __name__ == "__main__":
    main()
