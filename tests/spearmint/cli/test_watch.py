"""``status --watch`` on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

from tests.spearmint.conftest import MakeExperiment

CODE = (
    "import os, time\n"
    "def main(job_id, params):\n"
    "    while job_id > 1 and not os.path.exists('go'):\n"
    "        time.sleep(0.05)\n"
    "    return 0.5\n"
)


def test_it_follows_the_search_to_its_end(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment(CODE)
    controller = experiment.start("--max-finished-jobs=2")
    assert controller.stdout is not None
    while "trial 1: 0.5" not in controller.stdout.readline():
        pass
    ours, theirs = pty.openpty()
    watcher = subprocess.Popen(
        [sys.executable, "-m", "spearmint", "status", "--watch", str(experiment.root)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    screen = b""  # a part can end inside a character
    while b"1 running, 1 complete" not in screen:
        screen += os.read(ours, 4096)
    (experiment.root / "go").touch()
    while b"not running; 0 running, 2 complete" not in screen:
        screen += os.read(ours, 4096)
    assert watcher.wait() == 0
    os.close(ours)
    controller.communicate()
