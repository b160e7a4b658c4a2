"""One rank of a trial: ``python -P -m spearmint.trial.ranks.rank FOLDER``, started by torchrun.

This process keeps a fork that calls the user's code, and records how it ended: also if it was
killed by a signal or crashed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

from spearmint.layout import TrialFolder, read_json
from spearmint.trial.environment import RANK
from spearmint.trial.failure import failure_of, print_every_character
from spearmint.trial.final import call_final, read_metrics
from spearmint.trial.languages import Spec, main_of, numbers_of, to_arrays
from spearmint.trial.ranks.place import Place
from spearmint.trial.ranks.processes import ENDS, die_with_parent
from spearmint.trial.ranks.records import Records


def main(path: str) -> int:
    """Run the rank $RANK of the trial in the folder ``path``; return 0 if it returned."""
    die_with_parent(os.getppid())
    folder, keeper = TrialFolder(Path(path)), os.getpid()
    place = Place.here(folder, int(os.environ["WORLD_SIZE"]))
    records, rank = Records(folder, place), place.join(os.environ)
    os.environ[RANK] = str(rank)
    records.write_start(rank, keeper, int(os.environ.get("MASTER_PORT", "0")))
    pid = os.fork()
    if pid == 0:
        die_with_parent(keeper)
        os.setpgid(0, 0)  # signals to the group of the keeper come once
        return _run(folder, rank, records)

    def forward(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    for number in (*ENDS, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, forward)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    outcome = records.outcome(rank)
    if not outcome or "reason" in outcome:
        records.write_end(rank, status, time.monotonic())
        return 1
    if place.leads:  # the store, which ranks of other hosts can still use, ends with torchrun
        for number in ENDS:
            signal.signal(number, signal.SIG_DFL)
        records.wait_for_release()
    return 0


def _run(folder: TrialFolder, rank: int, records: Records) -> int:
    """Call the user's code, and store what it returned."""
    spec, pid = read_json(folder.spec) or {}, os.getpid()
    print_every_character()
    outcome = _evaluate(spec, folder, rank)
    when = time.monotonic()
    if os.getpid() != pid:
        os._exit(0)  # a forked child that also returned from main
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # or None
            stream.flush()
    records.write_outcome(rank, outcome, when)
    return 1 if "reason" in outcome else 0


def _evaluate(spec: Spec, folder: TrialFolder, rank: int) -> dict[str, Any]:
    """Return the numbers of rank 0, ``{"rank": number}`` of others, or ``{"reason": text}``.

    The numbers of a final training are its ``metrics``.
    """
    try:
        os.chdir(spec["directory"])
        if spec.get("final"):
            metrics = call_final(spec, folder)
            return {"metrics": read_metrics(metrics)} if rank == 0 else {"rank": rank}
        returned = main_of(spec)(spec["job_id"], to_arrays(spec["params"]))
        return numbers_of(spec, returned) if rank == 0 else {"rank": rank}
    except BaseException as error:  # noqa: BLE001 - any exception makes the rank fail
        return failure_of(error, Path(spec["directory"]))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
