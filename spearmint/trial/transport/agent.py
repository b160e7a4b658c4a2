"""Run a trial on a host without the experiment's directory: ``-m spearmint.trial.transport.agent``.

It unpacks what the submit side sent to its working directory, runs the trial's runner there, and
delivers output, reports and files while the trial runs and when it ends. Only standard library.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path
from types import FrameType

from spearmint.layout import TrialFolder, read_json, write_json
from spearmint.trial.environment import RERUN_EXIT_CODE, TRANSPORT_DATA, TRANSPORT_DONE
from spearmint.trial.leftovers import adopt_orphans, end_as, end_children
from spearmint.trial.transport.cache import DataMissing, open_data
from spearmint.trial.transport.chirp import Chirp
from spearmint.trial.transport.inputs import CONTENT, EXPERIMENT
from spearmint.trial.transport.job_ad import JOB, MACHINE, ad_number
from spearmint.trial.transport.mailroom import OUTBOX, SPEC, STATE
from spearmint.trial.transport.parcel import END, Header, Parcel, open_parcel
from spearmint.trial.transport.restore import restore
from spearmint.trial.transport.sender import Carrier, Packer, Sender
from spearmint.trial.transport.spool import Spool

OUTPUT = "output.txt"
"""File in the working directory to which the job's output is appended."""

_VACATE_S = 20  # from SIGTERM to SIGKILL for the job, if its ad does not say it
_RESERVE_S = 10  # of that, to end the other processes of the trial and to pack its files
_LAST_S = 3  # of that, to pack at least the output and the result


class Damaged(Exception):
    """An input did not arrive as it was sent."""


def main() -> int:
    """Run the trial; exit as its runner did, or with the code that asks for a rerun."""
    here, done = Path.cwd(), os.environ.pop(TRANSPORT_DONE, "")
    data = os.environ.pop(TRANSPORT_DATA, "")
    adopt_orphans()
    proxy, spool = Chirp.of_job(), Spool.of_job()
    try:
        if data:
            _unpack_data(here, data, proxy)
        header = _unpack(here)
    except (Damaged, OSError) as error:
        sys.stderr.write(f"cannot unpack the trial: {error}\n")
        return int(os.environ.get(RERUN_EXIT_CODE, "1"))
    if proxy is not None:
        _send_earlier(here / OUTBOX, proxy)
    is_known = not any((here / OUTBOX).glob(f"*{END}"))
    packer = Packer(TrialFolder(here / "trial"), here / OUTPUT, header, knows_files=is_known)
    trial = _Trial(forwards=spool is None)
    status = trial.run(here, spool or proxy, packer)
    packer.stops = trial.is_late
    # A queue brings only the last parcel back; a spool is emptied in order.
    _pack_last(packer, here / OUTBOX, everything=bool(trial.received) and spool is None)
    if proxy is not None and not trial.received:
        _announce(here / OUTBOX, proxy, done)
    return end_as(status)


def _unpack_data(here: Path, name: str, carrier: Chirp | None) -> None:
    """Unpack the experiment's large files from the cache of this host. Raises OSError."""

    def fetch(target: BufferedIOBase) -> None:
        if carrier is None:
            raise DataMissing("the job has no proxy (want_io_proxy)")
        carrier.fetch(name, target)

    with open_data(name, fetch, here) as path, _checked(path) as data:
        data.extract_files(here / "experiment", CONTENT)


def _unpack(here: Path) -> Header:
    """Unpack the inputs; return the header of this run's parcels. Raises Damaged."""
    folder = TrialFolder(here / "trial")
    with _checked(here / EXPERIMENT) as experiment:
        experiment.extract_files(here / "experiment", CONTENT)
    with _checked(here / SPEC) as spec:
        restore(spec, folder)
        key = spec.header.key
    sent = [here / STATE, *(here / OUTBOX).glob(f"*{END}")]
    newest, run = here / STATE, 0
    for path in sent:
        with open_parcel(path) as parcel:
            if parcel is not None and parcel.header.key == key and parcel.header.has_files:
                if parcel.header.run >= run:
                    newest, run = path, parcel.header.run
            elif path.name == STATE:
                raise Damaged(f"{STATE} is damaged")
    with _checked(newest) as state:
        restore(state, folder)
    content = read_json(folder.spec) or {}
    write_json(folder.spec, {**content, "directory": str(here / "experiment")})
    return Header(key=key, run=max(run + 1, _starts()), start=secrets.token_hex(4))


@contextlib.contextmanager
def _checked(path: Path) -> Iterator[Parcel]:
    with open_parcel(path) as parcel:
        if parcel is None:
            raise Damaged(f"{path.name} is missing or damaged")
        yield parcel


def _starts() -> int:
    """Return how often the queue has started this job; 0 if unknown."""
    return ad_number(JOB, "NumShadowStarts") or 0


def _limit_s() -> float:
    """Return the time from SIGTERM to SIGKILL."""
    limits = [ad_number(JOB, "JobMaxVacateTime"), ad_number(MACHINE, "MachineMaxVacateTime")]
    return min((found for found in limits if found is not None), default=_VACATE_S)


def _grace_s() -> float:
    """Return how long the trial may continue after SIGTERM."""
    limit = _limit_s()
    return limit - min(_RESERVE_S, limit / 2)


def _send_earlier(outbox: Path, carrier: Carrier) -> None:
    """Deliver what runs of this job packed that were evicted; otherwise it arrives at the end."""
    with contextlib.suppress(OSError):
        _send_all(outbox, carrier)


def _send_all(outbox: Path, carrier: Carrier) -> None:
    for path in sorted(outbox.glob(f"*{END}")):
        carrier.send(path, path.name)
        path.unlink()


def _announce(outbox: Path, carrier: Carrier, done: str) -> None:
    """Deliver the rest and say so; if that fails, the queue brings it back after the exit."""
    with contextlib.suppress(OSError):
        _send_all(outbox, carrier)
        if done:
            carrier.touch(done)


def _pack_last(packer: Packer, outbox: Path, *, everything: bool) -> None:
    """Pack what was not delivered; on a full disk, at least the result."""
    for with_files in (True, False):
        packer.stops = packer.stops if with_files else bool
        try:
            packer.pack(outbox, with_files=with_files, everything=everything and with_files)
        except (OSError, ValueError) as error:
            sys.stderr.write(f"cannot pack the files of the trial: {error}\n")
        else:
            return


class _Trial:
    """The runner's process, and the signals for it.

    Args:
        forwards: Whether the runner gets no signals but those that this process forwards.

    Attributes:
        received: Number of the last SIGTERM or SIGINT; 0 if none arrived.
    """

    def __init__(self, *, forwards: bool) -> None:
        self.received, self._forwards = 0, forwards
        self._deadline = float("inf")
        self._child: subprocess.Popen[bytes] | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._forward)

    def is_late(self) -> bool:
        """Return whether there is no time left to pack large files: SIGKILL follows soon."""
        return time.monotonic() > self._deadline

    def _forward(self, number: int, frame: FrameType | None) -> None:
        if not self.received:
            limit = _limit_s()
            self._deadline = time.monotonic() + limit - min(_LAST_S, limit / 4)
        if self._child is not None:
            if self._forwards:
                self._child.send_signal(number)
            if not self.received:
                timer = threading.Timer(_grace_s(), self._child.kill)
                timer.daemon = True
                timer.start()
        self.received = number

    def run(self, here: Path, carrier: Carrier | None, packer: Packer) -> int:
        """Run the trial and deliver while it runs; return the exit status of the runner."""
        argv = [sys.executable, "-P", "-m", "spearmint.trial.runner", str(here / "trial")]
        sender = None
        if carrier is not None:
            (here / "sending").mkdir(exist_ok=True)
            sender = Sender(carrier, packer, here / "sending")
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL, close_fds=False) as child:
            self._child = child
            if self.received:
                child.send_signal(self.received)
            if sender is not None:
                sender.start()
            status = child.wait()
        self._child = None
        end_children()
        if sender is not None:
            sender.stop()
        return status


if __name__ == "__main__":
    sys.exit(main())
