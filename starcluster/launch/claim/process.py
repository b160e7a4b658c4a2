"""Name this process so that another process on the same machine can check that it runs."""

from __future__ import annotations

import getpass
import os
import platform
from pathlib import Path


def this_process() -> tuple[str, str]:
    """Return the identity of this process, and its user and host for people."""
    pid = os.getpid()
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{_machine()} {pid} {_start(pid)}", f"{user}@{platform.node()} (process {pid})"


def _machine() -> str:
    """Return what tells machines and containers apart; empty if this system does not say."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}".replace(" ", "")
    except OSError:
        return ""


def has_ended(process: str) -> bool:
    """Return whether a process of this machine has ended; False for other machines."""
    machine, _, rest = process.partition(" ")
    if not machine or machine != _machine():
        return False
    pid, _, started = rest.partition(" ")
    return not pid.isdigit() or _start(int(pid)) != started


def _start(pid: int) -> str:
    """Return the start of a process in ticks since boot; empty if it has ended or is a zombie.

    Unlike the time of day, it stays the same when the clock of this machine is corrected.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]
