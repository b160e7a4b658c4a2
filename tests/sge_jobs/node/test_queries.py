"""Running Grid Engine's commands on a node."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from sge_jobs.node import queries
from sge_jobs.node.queries import QueryFailed, ask, find_program, retry


def test_a_failing_and_a_silent_program_are_no_answer() -> None:
    python = [sys.executable, "-c"]
    assert ask([*python, "print(open(0).read() + 'x' * 300000)"], os.environ).count("x") == 300000
    with pytest.raises(QueryFailed, match="denied"):
        ask([*python, "import sys; sys.exit('denied: not a submit host')"], os.environ, 20)
    with pytest.raises(QueryFailed, match=r"0\.5 s"):
        ask([*python, "import time; time.sleep(9)"], os.environ, 0.5)
    with pytest.raises(QueryFailed, match="No such file"):
        ask(["/nonexistent/qstat"], os.environ)


def test_a_question_is_asked_again_until_it_is_answered() -> None:
    answers = iter([QueryFailed("down"), QueryFailed("down"), 3])

    def attempt() -> int:
        answer = next(answers)
        if isinstance(answer, QueryFailed):
            raise answer
        return answer

    assert retry(attempt, 5, pause_s=0.001) == 3

    def fail() -> int:
        raise QueryFailed("down")

    with pytest.raises(QueryFailed):
        retry(fail, 0.02, pause_s=0.01)


def test_programs_are_found_where_the_daemon_has_no_architecture_in_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ending = queries._MACHINES.get(os.uname().machine)
    if ending is None:
        pytest.skip("Grid Engine has no name for this machine")
    monkeypatch.setattr(queries, "DEBIAN_BINARIES", "/nonexistent")
    for folder in (f"xlx{ending}", f"lx{ending}", "sol-sparc64"):
        program = tmp_path / "bin" / folder / "qconf"
        program.parent.mkdir(parents=True)
        program.write_text("")
        program.chmod(0o755)
    assert find_program("qconf", {"SGE_ROOT": str(tmp_path)}) == f"{tmp_path}/bin/lx{ending}/qconf"
    assert find_program("qhost", {"SGE_ROOT": str(tmp_path)}) == "qhost"
    assert find_program("qconf", {"SGE_ROOT": "/nonexistent"}) == "qconf"
    assert find_program("qconf", {}) == "qconf"
