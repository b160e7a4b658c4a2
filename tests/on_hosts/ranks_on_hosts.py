"""Trials whose ranks run on several hosts, by the stand-in for torch of the tests of ranks."""

from __future__ import annotations

import json

from tests.on_hosts.searches import SgeSearch
from tests.spearmint.trial.ranks.ranks import STAND_IN
from tests.testbed.cell import REPOSITORY, UID
from tests.waiting import until

CONFIG = (
    'language: PYTHON\nname: "{name}"\nlauncher: "torchrun"\n'
    'variable {{ name: "x" type: FLOAT min: 0 max: 1 }}\n'
)
# In trial 2, the last rank is killed; trial 3 waits until it is ended; the others return. The next
# trial starts when trial 3 ends, so each has processes with an argument of its own.
CODE = """
import json, os, signal, socket, subprocess, time
from spearmint import report
from torch.distributed import all_reduce

def main(job_id, params):
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    subprocess.Popen(["sleep", f"3012.{{job_id}}"], start_new_session=True)
    known = {{"host": socket.gethostname(), "gpus": os.environ.get("CUDA_VISIBLE_DEVICES")}}
    open({runs!r} + f"/{{job_id}}.{{rank}}", "w").write(json.dumps(known))
    total = all_reduce(10.0 ** rank)
    report(0, total)
    if job_id == 2 and rank == world - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if job_id in (2, 3):
        open({runs!r} + f"/ready.{{job_id}}.{{rank}}", "w").close()
        time.sleep(3600)
    return total
"""


def check_trials_on_two_hosts(search: SgeSearch, *options: str) -> list[dict[str, str]]:
    """Run a search of trials with two hosts and two ranks on each; return the ranks of trial 1.

    One trial returns, in one a rank on the second host is killed, and one is stopped while it runs.
    """
    runs = search.cell.shared / "runs" / search.directory.name

    def told(trial: int) -> list[dict[str, str]]:
        return [json.loads((runs / f"{trial}.{rank}").read_text()) for rank in range(4)]

    def is_ready(trial: int) -> bool:
        return all((runs / f"ready.{trial}.{rank}").exists() for rank in range(4))

    paths = f"--env=PYTHONPATH={STAND_IN}:{REPOSITORY}"
    more = ("--nodes=2", "--processes=2", "--max-retries=0", "--max-concurrent=1", paths)
    controller = search.start(*more, *options)
    said = controller.wait_for(r"rank 3 of 4 on (\S+) was killed by signal 9 \(SIGKILL\)")
    assert said[1].partition(".")[0] == told(2)[3]["host"]
    until(lambda: is_ready(3) or controller.has_ended, 120, 0.2)
    left = [len(node.processes("sleep 3012")) for node in search.cell.hosts]
    assert sorted(left)[-2:] == [2, 2], (left, controller.output)  # only those of trial 3
    search.cell.checked("spearmint", "stop", str(search.directory), "3", uid=UID)
    until(lambda: not any(node.processes("sleep 3012.3") for node in search.cell.hosts), 60, 0.2)
    controller.stop()
    ranks = told(1)
    hosts = [each["host"] for each in ranks]
    assert hosts[0] == hosts[1] != hosts[2] == hosts[3]
    assert next(trial["value"] for trial in search.trials()) == 1111.0
    return ranks
