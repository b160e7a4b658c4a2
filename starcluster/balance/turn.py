"""Who balances a cluster: one process at a time, which renews its turn on the master.

A balancer that is installed on the master comes first: the others end at their next check.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass
from typing import Protocol

from starcluster.balance.on_master.unit import UNIT_FILE
from starcluster.errors import StarClusterError
from starcluster.launch.claim.process import has_ended, this_process
from starcluster.node.shell import Shell

TURN_S = 300
"""Seconds after which another process takes the turn of one that no longer renews it."""
RENEW_S = 60.0
FILE = "/var/lib/starcluster/balancer-turn"
MASTER = "master"
ON_MASTER = "the balancer on the master"
# Runs on the master, so that all balancers share one lock and one clock. $1: the process, $2: its
# name for people, $3: seconds, $4: a process that has ended, $5: a file; if it exists, it is the
# turn of the master. Prints the other holder, if any.
_TAKE = """set -eu
mkdir -p "${0%/*}"
exec 9>>"$0.lock"
flock -w 20 9
now=$(date +%s) holder= name= until=0
if [ -s "$0" ]; then { read -r holder; read -r name; read -r until; } <"$0"; fi
if [ -e "$5" ]; then
    if [ "$holder" = "$1" ]; then rm -f "$0"; fi
    printf 'master\n%s\n' "$6"; exit 0
fi
if [ -n "$holder" ] && [ "$holder" != "$1" ] && [ "$holder" != "$4" ] && [ "$now" -lt "$until" ]
then printf '%s\\n%s\\n' "$holder" "$name"; exit 0; fi
printf '%s\\n' "$1" "$2" $((now + $3)) >"$0.new"
mv "$0.new" "$0"
"""
_GIVE = """set -eu
exec 9>>"$0.lock"
flock -w 20 9
{ read -r holder; } <"$0" || exit 0
[ "$holder" != "$1" ] || rm -f "$0"
"""


class HasShell(Protocol):
    """A source of new connections to the master."""

    def __call__(self) -> Shell:
        """Return a connection that is not open yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The process whose turn it is; ``name`` is for people."""

    process: str
    name: str


class Turn:
    """The turn of this process; a context manager that gives it back.

    Attributes:
        name: This process, for people.
    """

    def __init__(self, *, on_master: bool) -> None:
        process, by = this_process()
        # systemd runs one balancer on the master, also after a reboot and after kill -9.
        self._process = MASTER if on_master else process
        self.name = ON_MASTER if on_master else by
        self._shell: HasShell | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Turn:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join(RENEW_S)
            with contextlib.suppress(StarClusterError):
                self._on_master(_GIVE, self._process)

    def take(self, connect: HasShell) -> Holder | None:
        """Take or renew the turn; return the other process if it is not this one's turn.

        From then on the turn is renewed in the background, also while nodes are added.

        Args:
            connect: Returns a new connection to the master.

        Raises:
            SshError: The master is not reachable.
        """
        self._shell = connect
        holder = self._take("")
        if holder is not None and has_ended(holder.process):
            holder = self._take(holder.process)
        if holder is None and self._thread is None:
            self._thread = threading.Thread(target=self._renew, daemon=True)
            self._thread.start()
        return holder

    def _renew(self) -> None:
        while not self._ended.wait(RENEW_S):
            with contextlib.suppress(StarClusterError):  # the next renewal can succeed
                self._take("")

    def _take(self, ended: str) -> Holder | None:
        prior = "" if self._process == MASTER else UNIT_FILE
        arguments = (self._process, self.name, str(TURN_S), ended or "-", prior, ON_MASTER)
        text = self._on_master(_TAKE, *arguments)
        lines = text.splitlines()
        return Holder(process=lines[0], name=lines[1]) if len(lines) > 1 else None

    def _on_master(self, script: str, *arguments: str) -> str:
        assert self._shell is not None  # noqa: S101 - set by take
        ssh = self._shell()
        try:
            return ssh.checked(["sh", "-c", script, FILE, *arguments], timeout_s=60)
        finally:
            ssh.close()
