"""A fake Grid Engine: executables and one state file, for tests without a real cell.

``FakeGridEngine(directory)`` writes qsub, qstat and the others to ``programs``. A job
runs when the test calls ``run``. As a program, this file is each of those commands.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

COMMANDS = ("qsub", "qstat", "qdel", "qmod", "qacct", "qhost", "qconf")
GPU_COMPLEX = "gpu gpu INT <= YES JOB 0 0"
COMPLEXES = Path(__file__).parent / "answers" / "complexes.txt"
EMPTY = {"next": 1, "jobs": {}, "records": [], "down": "", "hang_s": 0, "calls": []}
REFUSED = """error: commlib error: got select error (Connection refused)
error: unable to send message to qmaster using port 6444 on host "master": got send error"""


class FakeGridEngine:
    """The cell as a test sees it."""

    def __init__(self, directory: Path) -> None:
        self.programs = directory / "bin"
        self.programs.mkdir(parents=True)
        self._state = directory / "state.json"
        self._state.write_text(json.dumps(EMPTY))
        for name in COMMANDS:
            program = self.programs / name
            argv = [sys.executable, "-S", __file__, str(self._state), name]
            program.write_text(f'#!/bin/sh\nexec {shlex.join(argv)} "$@"\n')
            program.chmod(0o755)

    @contextmanager
    def state(self) -> Iterator[dict[str, Any]]:
        """Change the cell."""
        with locked(self._state) as state:
            yield state

    def set(self, id: str, **changed: object) -> None:
        """Change a job: its ``state``, ``host`` or ``reason``."""
        with self.state() as state:
            state["jobs"][id].update(changed)

    def go_down(self, words: str = REFUSED) -> None:
        """Make every command fail with ``words``."""
        with self.state() as state:
            state["down"] = words

    def run(self, id: str) -> int:
        """Run a job to its end; return its exit status."""
        with self.state() as state:
            job = state["jobs"].pop(id)
        done = subprocess.run(["/bin/bash"], check=False, input=job["script"].encode(), cwd="/")
        self.record(id, name=job["name"], exit_status=done.returncode)
        return done.returncode

    def record(self, id: str, *, name: str = "x", failed: str = "0", exit_status: int = 0) -> None:
        """Write a record of a job that ended."""
        with self.state() as state:
            state["records"].append(
                {"jobnumber": id, "jobname": name, "failed": failed, "exit_status": exit_status}
            )

    def jobs(self) -> dict[str, dict[str, Any]]:
        """Return the jobs by number."""
        with self.state() as state:
            found: dict[str, dict[str, Any]] = state["jobs"]
            return found


@contextmanager
def locked(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        state = json.load(file)
        yield state
        file.seek(0)
        file.truncate()
        json.dump(state, file)


def main(path: Path, command: str, arguments: list[str]) -> int:
    with locked(path) as state:
        state["calls"].append([command, *arguments])
        if not state["down"] and not state["hang_s"]:
            status: int = globals()[command](state, arguments)
            return status
    until = time.monotonic() + state["hang_s"]
    while time.monotonic() < until and _hangs(path):
        time.sleep(0.02)
    print(state["down"], file=sys.stderr)
    return 1


def _hangs(path: Path) -> bool:
    with locked(path) as state:
        return bool(state["hang_s"])


def qsub(state: dict[str, Any], arguments: list[str]) -> int:
    options = dict(pairwise(arguments))
    if options.get("-q") == "none.q":
        words = 'Job was rejected because job requests unknown queue "none.q"'
        print(f"Unable to run job: {words}\nExiting.", file=sys.stderr)
        return 1
    id, state["next"] = str(state["next"]), state["next"] + 1
    gpus = [value.removeprefix("gpu=") for value in arguments if value.startswith("gpu=")]
    state["jobs"][id] = {
        "name": options["-N"],
        "script": sys.stdin.read(),
        "gpus": (gpus or ["0"])[0],
        "tasks": options.get("-t", ""),
        "state": "qw",
        "host": "",
        "reason": "",
        "owner": "me",
    }
    print(f"{id}.{options['-t']}:1" if "-t" in options else id)
    return 0


def qstat(state: dict[str, Any], arguments: list[str]) -> int:
    if "-j" in arguments:
        job = state["jobs"].get(arguments[-1])
        if job is None:
            print(f"<?xml version='1.0'?><unknown_jobs><ST_name>{arguments[-1]}</ST_name>")
            print("</unknown_jobs>")
            return 0
        reason = f"<QIM_message>{escape(job['reason'])}</QIM_message>" if job["reason"] else ""
        print(f"<?xml version='1.0'?><detailed_job_info>{reason}</detailed_job_info>")
        return 0
    rows = "".join(_row(id, job) for id, job in state["jobs"].items())
    print(f"<?xml version='1.0'?><job_info><queue_info>{rows}</queue_info></job_info>")
    return 0


def _row(id: str, job: dict[str, Any]) -> str:
    place = f"all.q@{job['host']}" if job["host"] else ""
    tasks = f"<tasks>{job['tasks']}</tasks>" if job["tasks"] else ""
    return (
        f"<job_list><JB_job_number>{id}</JB_job_number><JB_name>{escape(job['name'][:10])}</JB_name>"
        f"<JB_owner>{job['owner']}</JB_owner><state>{job['state']}</state>"
        f"<queue_name>{place}</queue_name><slots>1</slots>{tasks}"
        f"<full_job_name>{escape(job['name'])}</full_job_name>"
        f'<hard_request name="gpu">{job["gpus"]}</hard_request></job_list>'
    )


def qdel(state: dict[str, Any], arguments: list[str]) -> int:
    status = 0
    for id in (each for each in arguments if each != "-f"):
        if state["jobs"].get(id, {}).get("owner", "me") != "me":
            print(f"me - you do not have the necessary privileges to delete the job {id}")
            status = 1
        elif state["jobs"].pop(id, None) is None:
            print(f'denied: job "{id}" does not exist')
            status = 1
        else:
            print(f"me has deleted job {id}")
    return status


def qmod(state: dict[str, Any], arguments: list[str]) -> int:
    status = 0
    for id in arguments[1:]:
        job = state["jobs"].get(id)
        if job is None:
            print(f'invalid queue or job "{id}"')
            status = 1
        else:
            job["state"] = job["state"].replace("E", "")
            print(f"me cleared error state of job {id}")
    return status


def qacct(state: dict[str, Any], arguments: list[str]) -> int:
    found = [each for each in state["records"] if each["jobnumber"] == arguments[-1]]
    if not found:
        print(f"error: job id {arguments[-1]} not found\nusage: qacct [options]", file=sys.stderr)
        return 1
    for record in found:
        print("=" * 62, *(f"{name} {value}" for name, value in record.items()), sep="\n")
    return 0


def qconf(state: dict[str, Any], arguments: list[str]) -> int:
    print(COMPLEXES.read_text() + GPU_COMPLEX)
    return arguments != ["-sc"]


def qhost(state: dict[str, Any], arguments: list[str]) -> int:
    busy = sum(int(job["gpus"]) for job in state["jobs"].values() if job["host"])
    print(
        "<?xml version='1.0'?><qhost><host name='global'/><host name='node1'>"
        "<hostvalue name='num_proc'>8</hostvalue><hostvalue name='load_avg'>0.5</hostvalue>"
        f"<resourcevalue name='gpu' dominance='hc'>{4 - busy}.000000</resourcevalue>"
        "<queue name='all.q'><queuevalue name='slots'>4</queuevalue></queue></host></qhost>"
    )
    return 0


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
