"""CPU seconds of sge-jobs in a real cell with many configured hosts and waiting jobs.

A real qmaster on the test bed (needs root) has 3 hosts with daemons, and many configured hosts
without. ``python -m benchmarks.sge_many_hosts --hosts 1000 --jobs 10000`` takes several minutes,
most of them to submit the jobs. CPU seconds include Grid Engine's commands, but not its master.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from tests.testbed.cell import UID, Cell

_LIMITS_S = {"gpus": 1.0, "status": 1.0, "check": 2.0}
_HOST = "\n".join(
    f"{name} {value}"
    for name, value in {
        "hostname": "$h", "load_scaling": "NONE", "complex_values": "gpu=2", "user_lists": "NONE",
        "xuser_lists": "NONE", "projects": "NONE", "xprojects": "NONE", "usage_scaling": "NONE",
        "report_variables": "NONE",
    }.items()
)  # fmt: skip
_ADD_HOSTS = f"""\
set -e
for i in $(seq 1 $1); do
    h=$(printf h%04d $i)
    echo "10.99.$((i / 250)).$((i % 250 + 1)) $h" >> /etc/hosts
done
mkdir -p /tmp/hosts; cd /tmp/hosts
for i in $(seq 1 $1); do h=$(printf h%04d $i); printf '%s\\n' "{_HOST}" > $h; qconf -Ae $h; done
qconf -aattr hostgroup hostlist "$(echo h*)" @allhosts
"""
_ADD_JOBS = """\
cd /tmp
add() {
    for i in $(seq 1 $1); do
        echo true | qsub -h -o /dev/null -j y -N trial-$i-0123456789ab -l gpu=1
    done
}
for part in 1 2 3 4; do add $(($1 / 4)) & done; wait
"""
_MEASURE = """\
import io, json, resource, sys
from sge_jobs.cli.main import main
from sge_jobs.queue.commands import Commands
run, calls = Commands.run, []
Commands.run = lambda self, name, *a, **k: (calls.append(name), run(self, name, *a, **k))[1]
out, sys.stdout = sys.stdout, io.StringIO()
try: main(sys.argv[1:])
except SystemExit: pass
lines, sys.stdout = sys.stdout.getvalue().count("\\n"), out
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
seconds = sum(each.ru_utime + each.ru_stime for each in used)
print(json.dumps({"cpu_s": round(seconds, 2), "calls": len(calls), "lines": lines}))
"""


def main() -> int:
    """Build the cell, run each command three times and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--hosts", type=int, default=1000, help="Configured hosts. Default: 1000.")
    parser.add_argument("--jobs", type=int, default=10_000, help="Waiting jobs. Default: 10000.")
    options = parser.parse_args()
    path = f"PATH=/usr/lib/gridengine:{os.environ['PATH']}"
    with Cell() as cell:
        script = Path(cell.home, "add.sh")
        for text, number, uid in ((_ADD_HOSTS, options.hosts, 0), (_ADD_JOBS, options.jobs, UID)):
            script.write_text(text)
            done = cell.run("env", path, "bash", str(script), str(number), uid=uid, timeout_s=3600)
            if done.returncode:
                sys.exit(done.stderr)
        for command, limit_s in _LIMITS_S.items():
            runs = [
                json.loads(cell.checked(sys.executable, "-c", _MEASURE, command)) for _ in range(3)
            ]
            print(
                command,
                json.dumps(sorted(runs, key=lambda run: run["cpu_s"])[1]),
                f"limit {limit_s}",
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
