"""What the agent on another host gets: its command, its environment and its task."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spearmint.layout import TrialFolder
from spearmint.trial.ranks.hosts import others
from spearmint.trial.ranks.hosts.queue_hosts import client_argv, shared_variables
from spearmint.trial.ranks.place import Place
from spearmint.trial.ranks.records import Records

# As Grid Engine's qrsh: the login shell gets all words after the host, joined by spaces.
QRSH = '#!/bin/sh\n[ "$1 $2" = "-inherit b" ] && shift 2 && exec /bin/sh -c "$*"\n'
SAY = "import json, os, sys; print(json.dumps([os.environ['PYTHONPATH'], *sys.argv[1:]]))"


def test_the_login_shell_behind_qrsh_changes_no_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "qrsh").write_text(QRSH)
    (tmp_path / "qrsh").chmod(0o755)
    monkeypatch.setenv("PE_HOSTFILE", "/dev/null")
    monkeypatch.setenv("PYTHONPATH", odd := "/my projects/$HOME;(x86)")
    qrsh, *words = client_argv("b", [sys.executable, "-P", "-c", SAY, "a  b"])
    done = subprocess.run([tmp_path / qrsh, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [odd, "a  b"]


@pytest.mark.parametrize("given", [None, "ib0"])
def test_other_hosts_find_their_own_interface_unless_the_user_names_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str | None
) -> None:
    tasks: list[dict[str, Any]] = []
    monkeypatch.setattr(others, "hosts_of_job", lambda: ["a", "127.0.0.1"])
    monkeypatch.setattr(others, "interface_variables", lambda _: {"GLOO_SOCKET_IFNAME": "eth0"})
    monkeypatch.setattr(others, "client_argv", lambda host, argv: [])
    monkeypatch.setattr(others, "Client", lambda host, argv, task: tasks.append(task))
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", given or "")  # is restored at the end
    if given is None:
        monkeypatch.delenv("GLOO_SOCKET_IFNAME")
    place = Place(str(tmp_path), 2, nodes=2)
    folder = TrialFolder(tmp_path)
    started = others.start_others(folder, place, Records(folder, place))
    started._meeting.close()  # type: ignore[union-attr]
    assert tasks[0]["environment"].get("GLOO_SOCKET_IFNAME") == given


def test_variables_of_the_user_reach_other_hosts_and_those_of_the_job_do_not() -> None:
    mine = {"JOB_DATA": "x", "PE_MODE": "y", "OMP_NUM_THREADS": "2"}
    theirs = dict.fromkeys(("JOB_ID", "JOB_NAME", "JOB_SCRIPT", "PE_HOSTFILE", "SLURM_JOBID"), "1")
    assert shared_variables(mine | theirs) == mine


def test_a_task_can_come_in_many_parts() -> None:
    code = (
        "import os; from spearmint.trial.ranks.hosts import agent; read = os.read\n"
        "agent._SILENT_STEPS, agent.os.read = 5, lambda fd, n: read(fd, 2)\n"
        "print(agent._Life().task())"
    )
    argv, task = [sys.executable, "-c", code], '{"task": 1234567890}\n'
    done = subprocess.run(argv, input=task, capture_output=True, text=True, check=False)
    assert done.stdout == "{'task': 1234567890}\n", done.stderr
