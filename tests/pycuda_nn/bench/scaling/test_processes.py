"""Workers that are real processes, and do what a worker on a GPU can do."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from pycuda_nn.bench.scaling import processes
from pycuda_nn.bench.scaling.processes import Command, Line, run_cases
from tests.waiting import until

WORKER = """
import json, os, sys, time
def emit(*lines):
    sys.stdout.write("".join(json.dumps(line) + "\\n" for line in lines))
    sys.stdout.flush()
print("a library greets")
emit({"version": 1})
for n in json.loads(sys.argv[1])["todo"]:
    what = sys.argv[2].split(",")[n]
    if what == "ok":
        us = {"case": n, "us": 10.0 * n, "multicast": os.environ["NCCL_NVLS_ENABLE"]}
        emit({"begin": n}, us, {"done": n})
        continue
    emit({"begin": n})
    if what == "crash":
        raise ValueError(f"case {n} is bad")
    if what == "exit":
        os._exit(7)
    if what == "kill":
        os.kill(os.getpid(), 9)
    time.sleep(600)
"""


def command(deeds: str, code: str = WORKER) -> Command:
    def of(todo: Sequence[int]) -> list[str]:
        return [sys.executable, "-c", code, json.dumps({"todo": list(todo)}), deeds]

    return of


def run(deeds: str, limit_s: float = 60.0) -> list[Line]:
    return [line for line in run_cases(command(deeds), len(deeds.split(",")), limit_s)
            if "case" in line]  # fmt: skip


def test_results_come_in_order_and_multicast_is_off() -> None:
    assert run("ok,ok") == [
        {"case": 0, "us": 0.0, "multicast": "0"}, {"case": 1, "us": 10.0, "multicast": "0"},
    ]  # fmt: skip


def test_a_case_that_ends_its_worker_costs_only_itself() -> None:
    lines = run("ok,crash,ok,exit,kill,ok")
    assert [(line["case"], line.get("us")) for line in lines] == [
        (0, 0.0), (1, None), (2, 20.0), (3, None), (4, None), (5, 50.0),
    ]  # fmt: skip
    assert lines[1]["error"] == "ValueError: case 1 is bad"
    assert "7" in lines[3]["error"]
    assert "-9" in lines[4]["error"]


def test_a_case_that_hangs_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_END_S", 0.1)
    # The limit counts from the start of a case; a case that is ok begins and ends in one write.
    lines = run("hang,ok", limit_s=0.5)
    assert [line["case"] for line in lines] == [0, 1]
    assert "stopped" in lines[0]["error"]
    assert lines[1]["us"] == 10.0


def test_a_worker_that_cannot_start_is_the_error_of_all_cases() -> None:
    code = "import a_module_that_is_missing"
    lines = list(run_cases(command("", code), 3, 60.0))
    assert [line["case"] for line in lines] == [0, 1, 2]
    assert all("a_module_that_is_missing" in line["error"] for line in lines)


def test_no_worker_without_cases() -> None:
    assert list(run_cases(command(""), 0, 60.0)) == []


def test_the_error_of_a_rank_is_shown_not_the_summary_of_torchrun() -> None:
    code = (
        "import sys; sys.stderr.write('RuntimeError: no memory\\nFailed\\n"
        "torch.ChildFailedError: \\n====\\n'); sys.exit(1)"
    )
    (line,) = run_cases(command("", code), 1, 60.0)
    assert line["error"] == "RuntimeError: no memory"


def test_workers_end_when_the_caller_stops_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_END_S", 0.1)
    lines = run_cases(command("ok,hang"), 2, 60.0)
    assert next(lines) == {"version": 1}
    assert next(lines)["case"] == 0
    lines.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("module", ["own", "torch_ddp"])
def test_workers_end_after_a_kill_of_the_benchmark(module: str, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    code = (
        f"from pycuda_nn.bench.scaling.{module} import _end_with_parent\n"
        "import os, pathlib, time\n"
        "_end_with_parent()\n"
        f"pathlib.Path({str(file)!r}).write_text(f'{{os.getpid()}}\\n')\n"
        "time.sleep(600)"
    )
    parent = (
        "from pycuda_nn.bench.scaling.processes import run_cases\n"
        f"list(run_cases(lambda todo: [{sys.executable!r}, '-c', {code!r}], 1, 600.0))"
    )
    with _started(parent) as process:
        until(lambda: file.exists() and file.read_text().endswith("\n"))
        worker = int(file.read_text())
        process.kill()
        process.wait()
        until(lambda: not _runs(worker))


@contextlib.contextmanager
def _started(code: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)


def _runs(pid: int) -> bool:
    """Whether a process runs; one that ended and that nobody reaped does not."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"
