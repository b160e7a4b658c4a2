"""Stand-ins for the commands of queues: each job runs from its submission until it is cancelled."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from spearmint.drivers.celery.records import Records

_LEASE_S = 5.0

_COMMON = """#!/bin/sh
set -eu
state=${0%/*}/state
sleep "$(cat "$state/answer_s")"
new_id() { id=$(($(cat "$state/last") + 1)); echo "$id" > "$state/last"; }
value_of() { for word; do case $word in "$1"?*) echo "${word#"$1"}";; esac; done; }
"""
# A job in the listing of every user's jobs is one line of the file `jobs`.
_REMOVE = """
for id; do grep -v "^$id[^0-9]" "$state/jobs" > "$state/new" || :; mv "$state/new" "$state/jobs"
done
"""

_SLURM = {
    "sbatch": """
new_id; label=$(value_of --job-name= "$@")
printf '%-24s%-24s%-12s%-256s%-64s%s\\n' "$id" RUNNING 0 "node$((id % 97))" None "$label" \\
  >> "$state/jobs"
echo "$id"
""",
    "squeue": 'cat "$state/jobs"',
    "scancel": _REMOVE,
}
_SGE = {
    "qsub": """
new_id
while [ "$1" != -N ]; do shift; done
host=node$((id % 97)).cluster
sed "s/ID/$id/g; s/FULL/$2/g; s/SHORT/$(echo "$2" | cut -c1-10)/; s/HOST/$host/g" \
  "$state/row" >> "$state/jobs"
echo "$id"
""",
    "qstat": """
echo "<?xml version='1.0'?><job_info><queue_info>"
cut -d ' ' -f 2- "$state/jobs"
echo "</queue_info><job_info></job_info></job_info>"
""",
    "qdel": _REMOVE,
}
_SGE_ROW = (
    'ID <job_list state="running"><JB_job_number>ID</JB_job_number><JAT_prio>0.50000</JAT_prio>'
    "<JB_name>SHORT</JB_name><JB_owner>USER</JB_owner><state>r</state>"
    "<JAT_start_time>2026-11-24T12:00:00</JAT_start_time><queue_name>all.q@HOST</queue_name>"
    "<slots>1</slots><full_job_name>FULL</full_job_name><master_queue>all.q@HOST</master_queue>"
    '<hard_request name="gpu" resource_contribution="0.000000">1</hard_request>'
    "<hard_req_queue>all.q</hard_req_queue><binding>NONE</binding></job_list>\n"
)
_HTCONDOR = {
    "condor_submit": """
new_id
token=$(sed -n 's/.*SpearmintToken *= *"\\(.*\\)"/\\1/p')
sed "s/ID/$id/g; s/TOKEN/$token/; s/HOST/node$((id % 97))/" "$state/row" >> "$state/jobs"
echo "$id.0 - $id.0"
""",
    "condor_q": """
echo [; cut -d ' ' -f 2- "$state/jobs" | sed '$!s/$/,/'; echo ]
""",
    "condor_config_val": "echo",
    "condor_rm": _REMOVE,
}
_HTCONDOR_ROW = (
    'ID { "ClusterId": ID, "JobStatus": 2, "NumShadowStarts": 1, "ProcId": 0,'
    ' "RemoteHost": "slot1_ID@HOST", "SpearmintToken": "TOKEN" }\n'
)


@dataclass
class Bed:
    """Where a search runs.

    Attributes:
        environment: Variables of the command.
        options: Options of the command.
        running: Returns the number of jobs that run.
    """

    environment: dict[str, str]
    running: Callable[[], int]
    options: list[str] = field(default_factory=list)


@contextlib.contextmanager
def commands(
    folder: Path, programs: dict[str, str], answer_s: float, *options: str, row: str = ""
) -> Iterator[Bed]:
    """Yield a bed with stand-ins for the commands of a queue.

    Args:
        folder: Where to write them.
        programs: Their scripts, by name.
        answer_s: How long each call takes.
        options: Options of the search.
        row: What they list for a job.
    """
    binaries, state = folder / "bin", folder / "bin" / "state"
    state.mkdir(parents=True)
    for name, text in (("jobs", ""), ("last", "0\n"), ("answer_s", f"{answer_s}\n")):
        (state / name).write_text(text)
    (state / "row").write_text(row.replace("USER", getpass.getuser()))
    for name, text in programs.items():
        (binaries / name).write_text(_COMMON + text)
        (binaries / name).chmod(0o755)
    yield Bed(
        environment={"PATH": f"{binaries}:{os.environ['PATH']}"},
        running=lambda: (state / "jobs").read_text().count("\n"),
        options=list(options),
    )


@contextlib.contextmanager
def celery(folder: Path, answer_s: float) -> Iterator[Bed]:
    """Yield a bed with a Redis, and stand-ins for workers that claim jobs and renew leases."""
    redis = shutil.which("redis-server")
    if redis is None:
        raise SystemExit("CELERY needs redis-server: apt-get install redis-server")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    argv = [redis, "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    workers = _Workers(Records(folder / "search"))
    with subprocess.Popen(argv, cwd=folder, stdout=subprocess.DEVNULL) as broker:
        workers.start()
        yield Bed(
            environment={"SPEARMINT_BROKER_URL": f"redis://127.0.0.1:{port}/0"},
            running=lambda: len(workers.claimed),
        )
        workers.ending.set()
        workers.join()
        broker.terminate()


class _Workers(threading.Thread):
    """Claims each new job, and changes the leases of all as the hosts of trials do."""

    def __init__(self, records: Records) -> None:
        super().__init__(daemon=True)
        self._records = records
        self.claimed: set[str] = set()
        self.ending = threading.Event()

    def run(self) -> None:
        renewed, counter = time.monotonic(), 0
        while not self.ending.wait(0.2):
            jobs = self._records.base / "jobs"
            for path in jobs.iterdir() if jobs.exists() else ():
                if path.name not in self.claimed:
                    who = {"host": "node", "pid": 1, "gpu": "", "since": time.time()}
                    self._records.claim(path.name, who)
                    (path / "lease").write_text("0")
                    self.claimed.add(path.name)
            if time.monotonic() - renewed > _LEASE_S:
                renewed, counter = time.monotonic(), counter + 1
                for id in self.claimed:
                    with contextlib.suppress(FileNotFoundError):
                        (self._records.folder(id) / "lease").write_text(str(counter))


def beds(folder: Path, answer_s: float) -> dict[str, contextlib.AbstractContextManager[Bed]]:
    """Return the beds by the name of the driver and what distinguishes the search."""

    def condor(transfer: str) -> contextlib.AbstractContextManager[Bed]:
        option = f"--file-transfer={transfer}"
        return commands(folder, _HTCONDOR, answer_s, option, row=_HTCONDOR_ROW)

    return {
        "SGE": commands(folder, _SGE, answer_s, row=_SGE_ROW),
        "SLURM": commands(folder, _SLURM, answer_s),
        "HTCONDOR": condor("no"),
        "HTCONDOR, file transfer": condor("yes"),
        "CELERY": celery(folder, answer_s),
    }
