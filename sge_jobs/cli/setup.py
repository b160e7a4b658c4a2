"""``sge-jobs setup``: configure a cell so that each job gets its own GPUs."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path, PurePosixPath

from sge_jobs.cell.changes import Change, ChangePlan
from sge_jobs.cell.desired import STATE_COMPLEX_CLOSED, DesiredCell
from sge_jobs.cell.packages import explain
from sge_jobs.cell.qconf import Qconf
from sge_jobs.cell.qconf_text import CellConfig, complex_rows, list_values
from sge_jobs.cell.removal import plan_removal
from sge_jobs.cell.setup_plan import hosts_are_configured, plan_setup
from sge_jobs.cli.help import first_group
from sge_jobs.cli.output import say
from sge_jobs.cli.owners import others_than_root
from sge_jobs.errors import InputError, QueueUnreachable
from sge_jobs.gpu_state import count

NODE_FILES = Path(__file__).parents[1] / "node"
STARTER, SENSOR = "gpu-starter", "gpu-sensor"
HELP = """\
Configure a cell so that each job gets its own GPUs; run it on the master, as a manager.

A cell is one installation of Grid Engine. This command adds missing values and replaces those that
are still the defaults of Grid Engine's packages:

  complexes   gpu, gpu_state, gpu_fault; a complex is a resource that jobs can request with qsub -l
  hosts       the number of GPUs of each host, and the permission to query the master
  starter     the program that assigns GPUs to each job of the queue and then starts it
  sensor      the program on each host that reports who uses its GPUs
  smp         a parallel environment for several slots on one host
  faults      a host that cannot start jobs with GPUs offers none until it can (--keep-hosts)
  timings     the next job starts within a second; a lost host is noticed in half a minute

Values that the site has set do not change; they are listed. A second run changes nothing.

If Grid Engine's packages crash on this machine, as those of Ubuntu do, it prints the commands that
install working ones.

Before you remove this package, run --undo: it removes the starter and the sensor from the cell. A
queue whose starter does not exist goes into the error state E when the next job starts.

Examples:
  sge-jobs setup --dry-run
  sge-jobs setup --gpus=8 --gpus=node007=4
"""
_PLAIN_PATH = re.compile(r"[\w./+-]+", re.ASCII)  # qconf's lists have no quotes
_GIVE_PATH = "Give the path as the hosts see it: --files .../sge_jobs/node"
_ASK_S = 1.0
_HOST_COUNT = re.compile(r"(?:([\w.-]+)=)?(\d{1,4})")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = first_group(parser).add_argument
    add("-q", "--queue", default="all.q", help="Set up this queue. Default: all.q.")
    help = (
        "Set the number of GPUs of a host, or of every host that has no number yet. Repeatable."
        " Default: the numbers that the sensors report."
    )
    add("--gpus", metavar="[HOST=]N", action="append", default=[], help=help)
    help = (
        "Run the starter and the sensor from this path of sge_jobs/node on the hosts. Default: its"
        " path on this machine."
    )
    add("--files", metavar="DIR", type=Path, default=NODE_FILES, help=help)
    help = (
        "Let hosts that cannot start jobs with GPUs stay in the rotation. Default: such a host"
        " offers no GPUs until its check passes; it needs no rights for that."
    )
    add("--keep-hosts", action="store_true", help=help)
    help = (
        "Let only the processes of its jobs open the device of a GPU (/dev/nvidiaN). Requires the"
        " driver option NVreg_ModifyDeviceFiles=0 on the hosts. Default: as it is; at first, all"
        " users can open it."
    )
    add("--restrict-devices", action=argparse.BooleanOptionalAction, help=help)
    help = "Remove the starter and the sensor from all queues and hosts."
    add("--undo", action="store_true", help=help)
    help = "Print every qconf call without running it."
    add("-n", "--dry-run", action="store_true", help=help)


def run(arguments: argparse.Namespace) -> int:
    """Change the cell, or print the changes."""
    if arguments.undo:
        return _undo(dry_run=arguments.dry_run)
    counts = read_counts(arguments.gpus)
    files = _usable(arguments.files)
    if owners := others_than_root(arguments.files):
        who = ", ".join(owners)
        sys.stderr.write(
            f"Warning: {who} can change files in {files} that root runs on every host.\n"
            "To prevent this, install this package as root, for example below /opt.\n"
        )
    qconf = Qconf()
    try:
        cell = qconf.read([arguments.queue])
    except QueueUnreachable as error:
        raise explain(error) from error
    if unknown := sorted(set(counts) - set(cell.hosts) - {""}):
        names = ", ".join(cell.hosts) or "none"
        raise InputError(
            f"no execution host {', '.join(unknown)}", f"Choose one of {names}: --gpus HOST=N"
        )
    desired = DesiredCell(
        queue=arguments.queue,
        starter=files / STARTER,
        sensor=files / SENSOR,
        gpus={host: count for host, count in counts.items() if host},
        gpus_everywhere=counts.get(""),
        sensed=sensed_gpus(cell),
        keeps_hosts=arguments.keep_hosts,
        restricts_devices=arguments.restrict_devices,
    )
    made = plan_setup(cell, desired)
    _apply(qconf, made.changes, dry_run=arguments.dry_run)
    if made.later:
        say(f"# When every host has applied these changes, after at most {made.wait_s:.0f} s:")
        if not arguments.dry_run:
            cell = _wait_for_hosts(qconf, arguments.queue, made.wait_s)
            desired = replace(desired, sensed=sensed_gpus(cell))
        later = made.later if arguments.dry_run else plan_setup(cell, desired, waited=True).changes
        _apply(qconf, later, dry_run=arguments.dry_run)
        made = replace(made, later=later)
    _report(made, _hosts_without(cell, made), dry_run=arguments.dry_run)
    return 0


def _undo(*, dry_run: bool) -> int:
    qconf = Qconf()
    cell = qconf.read(qconf.queues())
    if STATE_COMPLEX_CLOSED.split()[1] in complex_rows(cell.complexes).get("gpu_state", []):
        raise InputError(
            "the cell restricts the devices of GPUs, and without the sensor they stay closed",
            "Run sge-jobs setup --no-restrict-devices, and wait five minutes",
        )
    made = plan_removal(cell)
    _apply(qconf, made.changes, dry_run=dry_run)
    say("Not changed:" + "".join(f"\n  {line}" for line in made.left))
    say("Nothing was changed." if dry_run else "Done." if made.changes else "Nothing to change.")
    return 0


def _apply(qconf: Qconf, changes: Iterable[Change], *, dry_run: bool) -> None:
    for change in changes:
        say(str(change))
        if not dry_run:
            qconf.apply(change)


def _wait_for_hosts(qconf: Qconf, queue: str, wait_s: float) -> CellConfig:
    """Return the cell when each host that is up has applied the changes, or after ``wait_s``."""
    deadline = time.monotonic() + wait_s
    while not hosts_are_configured(cell := qconf.read([queue])) and time.monotonic() < deadline:
        time.sleep(_ASK_S)
    return cell


def read_counts(texts: Iterable[str]) -> dict[str, int]:
    """Return the number of GPUs by host; ``""`` stands for the hosts that are not named."""
    counts: dict[str, int] = {}
    for text in texts:
        match = _HOST_COUNT.fullmatch(text)
        if match is None:
            raise InputError(f"--gpus={text}: expected N or HOST=N, e.g. 8 or node007=4")
        counts[match[1] or ""] = int(match[2])
    return counts


def sensed_gpus(cell: CellConfig) -> dict[str, int]:
    """Return how many GPUs the sensor of each host reports."""
    found: dict[str, int] = {}
    for host, attributes in cell.hosts.items():
        word = list_values(attributes.get("load_values", "")).get("gpu_state", "")
        try:
            found[host] = count(word)
        except ValueError:
            continue
    return found


def _usable(folder: Path) -> PurePosixPath:
    """Return the absolute path of ``folder``; InputError if jobs could not run programs in it."""
    folder = folder.absolute()
    if not _PLAIN_PATH.fullmatch(str(folder)):
        raise InputError(
            f"{folder}: Grid Engine does not accept this path of a program",
            f"Copy this package to a path of letters, digits and ./+-_ only. {_GIVE_PATH}",
        )
    for name in (STARTER, SENSOR):
        file = folder / name
        if not file.is_file():
            raise InputError(f"{file} does not exist", _GIVE_PATH)
        closed = [path for path in (file, *file.parents) if not path.stat().st_mode & 0o001]
        if closed:
            raise InputError(
                f"{file}: users cannot run it because they have no access to {closed[-1]}",
                f"Install this package where users of every host can read it. {_GIVE_PATH}",
            )
    return PurePosixPath(folder)


def _hosts_without(cell: CellConfig, made: ChangePlan) -> list[str]:
    changes = [*made.changes, *made.later]
    counted = {change.arguments[-1] for change in changes if change.arguments[1:2] == ("exechost",)}
    return [
        host
        for host, attributes in cell.hosts.items()
        if host not in counted and "gpu" not in list_values(attributes.get("complex_values", ""))
    ]


def _report(made: ChangePlan, uncounted: list[str], *, dry_run: bool) -> None:
    if made.left:
        say("Not changed:" + "".join(f"\n  {line}" for line in made.left))
    if uncounted:
        say(
            f"The number of GPUs of {', '.join(uncounted)} is not known yet. In a minute the"
            " sensors report it: rerun sge-jobs setup. Or give it: --gpus N"
        )
    changed = bool(made.changes or made.later)
    if dry_run:
        say("Nothing was changed." if changed else "Nothing to change.")
    elif changed:
        say("Done. List the remaining problems: sge-jobs check")
    else:
        say("Nothing to change.")
