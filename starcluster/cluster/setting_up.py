"""A note on the master that a command sets up nodes, so that a balancer keeps its hands off.

The claim of a command ends when its instances exist; their setup takes minutes more. Each process
has a note of its own, which it renews, so that a killed command does not hold others for long.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass

from starcluster.errors import StarClusterError
from starcluster.launch.claim.process import has_ended, this_process
from starcluster.logger import log
from starcluster.node.shell import Shell

FOLDER = "/var/lib/starcluster/setups"
KEEP_S = 300
"""Seconds after which a note that is no longer renewed does not count."""
RENEW_S = 60.0
# $1: name of the file, $2: running or ended, $3: process, $4: its name for people, $5: seconds. The
# lines are: since, until, state, process, name; times of the master's clock.
_NOTE = """set -eu
umask 077
mkdir -p "$0"
cd "$0"
now=$(date +%s) since= until= state=
if [ -s "$1" ]; then { read -r since; read -r until; read -r state; } <"$1"; fi
[ "$state" = running ] || since=$now
printf '%s\\n' "$since" $((now + $5)) "$2" "$3" "$4" >"$1.new"
mv "$1.new" "$1"
"""
# $1: seconds after which a running note ends, $2: seconds after which an old one is deleted.
_READ = """cd "$0" 2>/dev/null || exit 0
now=$(date +%s)
for file in *; do
    case $file in *.new) continue ;; esac
    { read -r since && read -r until && read -r state && read -r process && read -r name
    } 2>/dev/null <"$file" || continue
    left=$((until - now))
    if [ "$left" -le 0 ] || [ "$left" -gt "$1" ]; then state=ended; fi
    if [ $((-left)) -gt "$2" ]; then rm -f "$file"; continue; fi
    printf '%s\\n' "$state" $((now - since)) $((-left)) "$process" "$name"
done
"""
_FORGET_S = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The setup of nodes by a process; ``by`` is its name for people.

    Attributes:
        age_s: Seconds since it began.
        ended_s: Seconds since it ended; None while it runs.
    """

    process: str
    by: str
    age_s: float
    ended_s: float | None = None

    def __str__(self) -> str:
        return f"{self.by} sets up nodes since {self.age_s:.0f} s"


class SettingUp:
    """A note that this process sets up nodes; a context manager.

    Without it a setup works too, so an error of the master is not raised here.
    """

    def __init__(self, ssh: Shell, connect: Callable[[], Shell]) -> None:
        """Prepare.

        Args:
            ssh: The connection to the master.
            connect: Returns another one, to renew the note in the background.
        """
        self._ssh, self._connect = ssh, connect
        self._process, self._by = this_process()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True)

    def __enter__(self) -> SettingUp:
        self._note(self._ssh, "running", KEEP_S)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(RENEW_S)
        self._note(self._ssh, "ended", 0)

    def _renew(self) -> None:
        while not self._ended.wait(RENEW_S):
            with contextlib.suppress(StarClusterError), contextlib.closing(self._connect()) as ssh:
                self._note(ssh, "running", KEEP_S)

    def _note(self, ssh: Shell, state: str, seconds: int) -> None:
        name = hashlib.sha256(self._process.encode()).hexdigest()[:16]
        words = ["sh", "-c", _NOTE, FOLDER, name, state, self._process, self._by, str(seconds)]
        try:
            ssh.checked(words, timeout_s=60)
        except StarClusterError as error:
            log.debug("cannot note the setup on the master: %s", error.what)


def setups(ssh: Shell) -> list[Setup]:
    """Return the setups that the master knows, running or ended within the last hour.

    A setup by a process of this machine that no longer runs has ended.
    """
    text = ssh.checked(["sh", "-c", _READ, FOLDER, str(2 * KEEP_S), str(_FORGET_S)], timeout_s=60)
    lines = text.splitlines()
    found = []
    for state, age, over, process, by in zip(*[iter(lines)] * 5, strict=False):
        ended = float(over) if state == "ended" else 0.0 if has_ended(process) else None
        found.append(Setup(process=process, by=by, age_s=float(age), ended_s=ended))
    return found
