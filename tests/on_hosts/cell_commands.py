"""Run the command sge-jobs and its Python API on a real cell."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.testbed.cell import UID, Cell
from tests.testbed.fabric import Node

COMMAND = (sys.executable, "-m", "sge_jobs")
DOOR = """\
import json, os, sys
from dataclasses import asdict
from pathlib import Path
from sge_jobs.errors import SgeJobsError
from sge_jobs.model import *
from sge_jobs import Queue
q = Queue()
def plain(one): return getattr(one, "value", None) or asdict(one)
def show(value): print(json.dumps(value, default=plain))
"""


def door(cell: Cell, code: str) -> list[object]:
    """Run ``code`` on the master with ``q``, a Queue of the user; return the values it printed."""
    out = cell.checked(sys.executable, "-c", DOOR + code, uid=UID)
    return [json.loads(line) for line in out.splitlines()]


def command(
    cell: Cell,
    *arguments: str,
    uid: int = UID,
    timeout_s: float = 300,
    node: Node | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run sge-jobs in the user's home, on the master or on ``node``."""
    argv = ("sh", "-c", f'cd {cell.home} && exec "$@"', "sh", *COMMAND, *arguments)
    return subprocess.run(
        cell.enter(argv, uid=uid, node=node),
        check=False,
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )


def start(cell: Cell, *arguments: str) -> subprocess.Popen[str]:
    argv = ["sh", "-c", f'cd {cell.home} && exec "$@"', "sh", *COMMAND, *arguments]
    return subprocess.Popen(
        cell.enter(argv, uid=UID),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def listed(cell: Cell) -> dict[str, str]:
    """Return the states of all jobs by number."""
    rows = cell.run("qstat", "-u", "*").stdout.splitlines()[2:]
    return {row.split()[0]: row.split()[4] for row in rows}


def problems(cell: Cell, uid: int = UID) -> str:
    """Return the problems that ``sge-jobs check`` finds, with their fixes; empty if none."""
    done = command(cell, "check", "--json", uid=uid)
    found = json.loads(done.stdout)
    assert done.returncode == int(bool(found)), done.stderr
    return "\n".join(f"{each['what']}\n{each['fix']}" for each in found)
