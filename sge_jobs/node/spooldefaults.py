"""Test if Grid Engine's packages crash on this host, as those of Ubuntu do."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from pathlib import Path

PROGRAMS = Path("/usr/lib/gridengine")
CONFIGURATION = Path("/usr/share/gridengine/default-configuration")
TIMEOUT_S = 60
_SIGNAL_STATUS = 128  # a shell adds it to the number of the signal
_BOOTSTRAP = """admin_user none
default_domain none
ignore_fqdn true
spooling_method berkeleydb
spooling_lib libspoolb
spooling_params {folder}/spooldb
binary_path /usr/sbin
qmaster_spool_dir {folder}
security_mode none
listener_threads 2
worker_threads 2
scheduler_threads 1
"""


def spooldefaults_crash(programs: Path = PROGRAMS) -> str:
    """Return the signal that ends spooldefaults with the default configuration; empty if none.

    Writes only to a temporary directory. Also empty if it is not installed or fails otherwise.
    """
    if not (programs / "spooldefaults").exists():
        return ""
    with tempfile.TemporaryDirectory(prefix="sge-probe-") as name:
        folder = Path(name)
        (folder / "spooldb").mkdir()
        (folder / "default" / "common").mkdir(parents=True)
        bootstrap = folder / "default" / "common" / "bootstrap"
        bootstrap.write_text(_BOOTSTRAP.format(folder=folder), encoding="utf-8")
        environment = {**os.environ, "SGE_ROOT": name, "SGE_CELL": "default"}
        for program, *arguments in (
            ["spoolinit", "berkeleydb", "libspoolb", f"{folder}/spooldb", "init"],
            ["spooldefaults", "configuration", str(CONFIGURATION)],
        ):
            try:
                done = subprocess.run(
                    [str(programs / program), *arguments],
                    check=False,
                    cwd=folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=TIMEOUT_S,
                )
            except (OSError, subprocess.TimeoutExpired):
                return ""
            if found := _signal(done.returncode):
                return found
    return ""


def _signal(status: int) -> str:
    number = -status if status < 0 else status - _SIGNAL_STATUS
    return signal.Signals(number).name if number in set(signal.Signals) else ""
