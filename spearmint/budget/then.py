"""What happens to the cluster after the search: ``starcluster`` terminates it."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from starmint.bill import Bill

_LOOK_S = 120.0


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a cluster.

    Attributes:
        action: ``terminate``.
        bill: Names the cluster and its region.
    """

    action: str
    bill: Bill

    @property
    def command(self) -> list[str]:
        """The command that ends the cluster."""
        return ["starcluster", "-r", self.bill.region, self.action, "--confirm", self.bill.cluster]

    def obstacle(self) -> str:
        """Return why the command will not work here; empty if it probably does."""
        program = shutil.which("starcluster")
        if program is None:
            return "the command starcluster is not installed here"
        look = [program, "-r", self.bill.region, "listclusters", "--json", self.bill.cluster]
        try:
            done = subprocess.run(
                look, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_LOOK_S,
                check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        lines = done.stderr.strip().splitlines()
        return "" if done.returncode == 0 else (lines or ["it failed"])[0]

    def warn(self, say: Callable[[str], None]) -> None:
        """Report before the search if this machine cannot end the cluster."""
        if why := self.obstacle():
            say(
                f"The search cannot {self.action} the cluster from here: {why}\n"
                f"When it ends, run this where you started the cluster: {self.shown}"
            )

    @property
    def shown(self) -> str:
        """The command for people."""
        return shlex.join(self.command)

    def run(self, say: Callable[[str], None]) -> bool:
        """End the cluster, and report it; return whether it worked."""
        say(f"Running: {self.shown}")
        try:
            done = subprocess.run(self.command, stdin=subprocess.DEVNULL, check=False)
        except OSError as error:
            say(f"cannot run it: {error}")
        else:
            if done.returncode == 0:
                return True
        say(f"The cluster still runs and costs. Run this elsewhere: {self.shown}")
        return False
