"""``sge-jobs setup``: let a cell give each job GPUs of its own."""

from __future__ import annotations

import argparse
import re
import shlex
import stat
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path, PurePosixPath

from sge_jobs.cell.changes import Change, ChangePlan
from sge_jobs.cell.desired import DesiredCell
from sge_jobs.cell.qconf import Qconf
from sge_jobs.cell.qconf_text import CellConfig, list_values
from sge_jobs.cell.removal import plan_removal
from sge_jobs.cell.setup_plan import hosts_are_configured, plan_setup
from sge_jobs.cli.output import say
from sge_jobs.errors import InputError
from sge_jobs.gpu_state import count

NODE_FILES = Path(__file__).parents[1] / "node"
STARTER, SENSOR = "gpu-starter", "gpu-sensor"
HELP = """\
Let a cell give each job GPUs of its own; run it on the master, as a manager.

Adds what is missing and replaces what is still as Grid Engine's packages bring it: the complexes
gpu and gpu_state, the GPUs of each host, the queue's starter and the hosts' sensor, the parallel
environment smp, and timings that start the next job within a second. What a site set stays, and
is listed. A second run changes nothing.

Before this package is removed, --undo takes its starter and sensor out of the cell: a queue whose
starter is not there goes into state E.

examples:
  sge-jobs setup --dry-run
  sge-jobs setup --gpus=8 --gpus=node007=4
"""
_PLAIN_PATH = re.compile(r"[\w./+-]+", re.ASCII)  # qconf's lists have no quotes
_OTHER_PLACE = "Name where the hosts see it: --files .../sge_jobs/node"
_ASK_S = 1.0
_HOST_COUNT = re.compile(r"(?:([\w.-]+)=)?(\d{1,4})")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("-q", "--queue", default="all.q", help="queue to set up (all.q)")
    parser.add_argument(
        "--gpus",
        metavar="[HOST=]N",
        action="append",
        default=[],
        help="GPUs of a host, or of every host that has no number yet; default: those that the"
        " hosts' sensors report",
    )
    parser.add_argument(
        "--files",
        metavar="DIR",
        type=Path,
        default=NODE_FILES,
        help="where the hosts see sge_jobs/node of this package (where this machine has it)",
    )
    parser.add_argument(
        "--undo", action="store_true", help="take starter and sensor out of all queues and hosts"
    )
    parser.add_argument(
        "-n", "--dry-run", action="store_true", help="print every qconf call; change nothing"
    )


def run(arguments: argparse.Namespace) -> int:
    """Change the cell, or say what would be changed."""
    if arguments.undo:
        return _undo(dry_run=arguments.dry_run)
    counts = read_counts(arguments.gpus)
    files = _usable(arguments.files)
    if owners := others_than_root(arguments.files):
        who = ", ".join(owners)
        sys.stderr.write(
            f"Warning: root on every host runs files of {files} that {who} can change.\n"
            "Install this package as root, for instance below /opt, to end that.\n"
        )
    qconf = Qconf()
    cell = qconf.read([arguments.queue])
    if unknown := sorted(set(counts) - set(cell.hosts) - {""}):
        there = ", ".join(cell.hosts) or "none"
        raise InputError(f"no execution host {', '.join(unknown)}; there are: {there}")
    desired = DesiredCell(
        queue=arguments.queue,
        starter=files / STARTER,
        sensor=files / SENSOR,
        gpus={host: count for host, count in counts.items() if host},
        gpus_everywhere=counts.get(""),
        sensed=sensed_gpus(cell),
    )
    made = plan_setup(cell, desired)
    _apply(qconf, made.changes, dry_run=arguments.dry_run)
    if made.later:
        say(f"# Then, once every host reports that often, at most {made.wait_s:.0f} s later:")
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
    made = plan_removal(qconf.read(qconf.queues()))
    _apply(qconf, made.changes, dry_run=dry_run)
    say("Left alone:" + "".join(f"\n  {line}" for line in made.left))
    say("Nothing was changed." if dry_run else "Done." if made.changes else "Nothing to change.")
    return 0


def _apply(qconf: Qconf, changes: Iterable[Change], *, dry_run: bool) -> None:
    for change in changes:
        say(str(change))
        if not dry_run:
            qconf.apply(change)


def _wait_for_hosts(qconf: Qconf, queue: str, wait_s: float) -> CellConfig:
    """Return the cell when every host that is up has our sensor, and so the new configuration."""
    deadline = time.monotonic() + wait_s
    while not hosts_are_configured(cell := qconf.read([queue])) and time.monotonic() < deadline:
        time.sleep(_ASK_S)
    return cell


def read_counts(texts: Iterable[str]) -> dict[str, int]:
    """Return the GPUs of each named host, and of the others under ``""``."""
    counts: dict[str, int] = {}
    for text in texts:
        match = _HOST_COUNT.fullmatch(text)
        if match is None:
            raise InputError(f"--gpus={text}: must be a number, or HOST=NUMBER")
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
    """Return ``folder`` as hosts can use it; InputError where their users could not."""
    folder = folder.absolute()
    if not _PLAIN_PATH.fullmatch(str(folder)):
        raise InputError(
            f"{folder}: Grid Engine takes no such path for a program",
            f"Copy this package to a path of letters, digits and ./+-_. {_OTHER_PLACE}",
        )
    for name in (STARTER, SENSOR):
        file = folder / name
        if not file.is_file():
            raise InputError(f"{file} is not there", _OTHER_PLACE)
        closed = [path for path in (file, *file.parents) if not path.stat().st_mode & 0o001]
        if closed:
            raise InputError(
                f"{file}: users cannot run it, for {closed[-1]} is closed to them",
                f"Install this package where users of every host can read it. {_OTHER_PLACE}",
            )
    return PurePosixPath(folder)


def others_than_root(folder: Path) -> list[str]:
    """Return the users and groups that can change what root runs of ``folder``.

    Raises:
        InputError: Everybody can.
    """
    package = folder.absolute().parent
    files = [*package.glob("*.py"), *package.glob("__pycache__/*"), *folder.rglob("*")]
    above = {*folder.absolute().parents, *folder.resolve().parents, folder}
    found = set()
    for path in (*sorted(above), package / "__pycache__", *files):
        if not path.exists():
            continue
        status = path.stat()
        sticky = path.is_dir() and status.st_mode & stat.S_ISVTX  # its files are their owners'
        if status.st_mode & stat.S_IWOTH and not sticky:
            raise InputError(
                f"{path}: everybody can change it, and root on every host would run it",
                f"chmod o-w {shlex.quote(str(path))}; see that nobody has changed it meanwhile",
            )
        if status.st_uid:
            found.add(_name(path.owner, status.st_uid))
        if status.st_mode & stat.S_IWGRP and status.st_gid and not sticky:
            found.add(f"group {_name(path.group, status.st_gid)}")
    return sorted(found)


def _name(ask: Callable[[], str], number: int) -> str:
    try:
        return ask()
    except KeyError:
        return str(number)


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
        say("Left alone:" + "".join(f"\n  {line}" for line in made.left))
    if uncounted:
        say(
            f"No GPUs known yet on {', '.join(uncounted)}. In a minute their sensors report them:"
            " run sge-jobs setup again. Or give their number: --gpus N"
        )
    changed = bool(made.changes or made.later)
    if dry_run:
        say("Nothing was changed." if changed else "Nothing to change.")
    elif changed:
        say("Done. See what is still wrong: sge-jobs check")
    else:
        say("Nothing to change.")
