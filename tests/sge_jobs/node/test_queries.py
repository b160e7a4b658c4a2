"""How many GPUs a job asked for."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from sge_jobs.node import queries as request
from sge_jobs.node.queries import QueryFailed, ask, consumable_kind, requested_gpus

JOB = "==============\njob_number:                 5\nowner:                      4cells\n"


@pytest.mark.parametrize(
    ("line", "gpus"),
    [
        ("", 0),
        ("hard resource_list:         gpu=2\n", 2),
        ("hard resource_list:         h_rt=60,gpu=1,mem_free=8G\n", 1),
        ("hard_resource_list:         gpu=4.000000\n", 4),
        ("hard resource_list:         gpu_model=7,mygpu=3\n", 0),
        ("soft resource_list:         gpu=2\n", 0),
        ("env_list:                   A=hard resource_list: gpu=9\n", 0),
    ],
)
def test_the_request_is_read_from_qstat(line: str, gpus: int) -> None:
    assert requested_gpus(JOB + line) == gpus


@pytest.mark.parametrize("text", ["", "error: commlib error: got select error\n"])
def test_no_job_is_no_answer(text: str) -> None:
    with pytest.raises(QueryFailed):
        requested_gpus(text)


def test_a_request_that_is_no_number_is_an_error_of_its_own() -> None:
    with pytest.raises(ValueError, match="gpu=many"):
        requested_gpus(JOB + "hard resource_list: gpu=many\n")


def test_the_kind_of_the_consumable() -> None:
    text = "#name shortcut type relop requestable consumable default urgency\n"
    assert consumable_kind(text) == ""
    assert consumable_kind(text + "gpu gpu INT <= YES JOB 0 0\n") == "JOB"


def test_a_failing_and_a_silent_program_are_no_answer() -> None:
    python = [sys.executable, "-c"]
    assert ask([*python, "print(open(0).read() + 'x' * 300000)"], os.environ).count("x") == 300000
    for code in (
        "import sys; sys.exit('denied: host is no submit host')",
        "import time; time.sleep(9)",
    ):
        with pytest.raises(QueryFailed, match=r"denied|no answer"):
            ask([*python, code], os.environ, 0.5 if "sleep" in code else 20)
    with pytest.raises(QueryFailed, match="No such file"):
        ask(["/nonexistent/qstat"], os.environ)


def test_a_question_is_asked_again_until_it_is_answered() -> None:
    answers = iter([QueryFailed("down"), QueryFailed("down"), 3])

    def attempt() -> int:
        answer = next(answers)
        if isinstance(answer, QueryFailed):
            raise answer
        return answer

    assert request.retried(attempt, 5, pause_s=0.001) == 3
    with pytest.raises(QueryFailed):
        request.retried(lambda: requested_gpus(""), 0.02, pause_s=0.01)


def test_programs_are_found_where_the_daemon_has_no_architecture_in_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ending = request._MACHINES.get(os.uname().machine)
    if ending is None:
        pytest.skip("Grid Engine has no name for this machine")
    monkeypatch.setattr(request, "DEBIAN_BINARIES", "/nonexistent")
    for folder in (f"xlx{ending}", f"lx{ending}", "sol-sparc64"):
        program = tmp_path / "bin" / folder / "qconf"
        program.parent.mkdir(parents=True)
        program.write_text("")
        program.chmod(0o755)
    assert request.find("qconf", {"SGE_ROOT": str(tmp_path)}) == f"{tmp_path}/bin/lx{ending}/qconf"
    assert request.find("qhost", {"SGE_ROOT": str(tmp_path)}) == "qhost"
    assert request.find("qconf", {"SGE_ROOT": "/nonexistent"}) == "qconf"
    assert request.find("qconf", {}) == "qconf"
