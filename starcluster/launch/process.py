"""Name this process so that another process on the same machine can check that it runs."""

from __future__ import annotations

import getpass
import os
import platform
from pathlib import Path

import psutil


def this_process() -> tuple[str, str]:
    """Return the identity of this process, and its user and host for people."""
    me = psutil.Process()
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    text = f"{_machine()} {me.pid} {me.create_time():.2f}"
    return text, f"{user}@{platform.node()} (process {me.pid})"


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
    pid, _, created = rest.partition(" ")
    try:
        found = psutil.Process(int(pid))
        ended = found.status() == psutil.STATUS_ZOMBIE
        return ended or f"{found.create_time():.2f}" != created
    except (psutil.Error, ValueError):
        return True
