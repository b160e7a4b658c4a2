"""What a job on the manager runs: ``-m condor_jobs.node search|publish FOLDER``, or ``run``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from condor_jobs.chain import BEST, Chain
from condor_jobs.errors import CondorJobsError, NodeFailed
from condor_jobs.publish import publish
from condor_jobs.search import best_of, search


def main() -> int:
    """Run a node, append its output to a file, and return its exit code."""
    kind, where, *options = sys.argv[1:]
    folder = Path(where)
    _append_to(folder / ("search.log" if kind == "run" else f"{kind}.out"))
    try:
        if kind == "run":
            return search(folder, options)
        chain = Chain.read(folder)
        if kind == "search":
            _search(chain, folder)
        else:
            print(f"Published {publish(chain, folder)} as {chain.target}")  # noqa: T201
    except (CondorJobsError, OSError, ValueError) as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    return 0


def _search(chain: Chain, folder: Path) -> None:
    directory = Path(chain.directory)
    if status := search(directory, chain.options, chain.region):
        if status >= 128:
            sys.exit(status)
        raise NodeFailed(f"the search of {directory} ended with exit code {status}")
    part = folder / f".{BEST}.new"
    part.write_text(best_of(directory, chain.region))
    part.replace(folder / BEST)


def _append_to(path: Path) -> None:
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)


if __name__ == "__main__":
    sys.exit(main())
