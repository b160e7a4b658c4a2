"""End all that a process started, except what it spares."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import subprocess
from spearmint.trial.leftovers import adopt_orphans
from spearmint.trial.ranks.processes import end_descendants, is_running
from spearmint.trial.supervise import descendants
adopt_orphans()
spared = subprocess.Popen(["sh", "-c", "sleep 600 & echo; wait"], stdout=subprocess.PIPE)
other = subprocess.Popen(["sh", "-c", "sleep 600 & wait"])
spared.stdout.readline()
(below,) = descendants(spared.pid)
end_descendants(5.0, spare=[spared.pid])
print(is_running(spared.pid), is_running(below), is_running(other.pid))
end_descendants(0.0)
print(is_running(spared.pid), is_running(below))
"""


def test_a_spared_process_keeps_what_it_started() -> None:
    """A client of a queue such as qrsh can start ssh, which brings the last words of a host."""
    argv = [sys.executable, "-c", CODE]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["True True False", "False False"], done.stderr
