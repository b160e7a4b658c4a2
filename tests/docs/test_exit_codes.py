"""The table of exit codes: each row has a test, here or next to what it is about."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import commands
from tests.docs.tools import DOCS, ROOT
from tests.spearmint.controller.test_kill import said_until
from tests.waiting import until

KILL = "spearmint/controller/test_kill.py"
SGE = "sge_jobs/cli/test_cli.py"
HERE = "docs/test_exit_codes.py"
TESTS = {
    ("0", "all"): f"{HERE}::test_help_is_done",
    ("0", "spearmint run"): f"{KILL}::test_ctrl_c_once_waits_for_the_running_trial",
    ("1", "all"): f"{HERE}::test_a_reader_that_has_gone_is_no_traceback",
    ("1", "spearmint run"): "spearmint/trial/test_broken_trials.py::test_the_search_stops_when_the",
    ("1", "sge-jobs check"): "on_hosts/cell_commands.py::problems",
    ("1", "spearmint check"): "spearmint/checking/test_check.py::test_a_damaged_database",
    ("1", "spearmint final"): "spearmint/final/test_final.py::test_a_failed_training_keeps",
    ("1", "spearmint plan"): "spearmint/plan/test_plan.py::test_what_cannot_be_planned_is_named",
    ("1", "spearmint rollback"): "spearmint/final/test_final.py::test_the_best_of_each_region",
    ("1", "starcluster prices"): "starcluster/money/test_prices.py::test_prices_without_a_perm",
    ("2", "all"): f"{HERE}::test_a_wrong_option_is_refused",
    ("2", "spearmint run"): f"{KILL}::test_a_second_controller_says_so",
    ("2", "spearmint status"): f"{HERE}::test_a_directory_without_a_search",
    ("2", "spearmint init"): "spearmint/templates/test_templates.py::test_no_file_is_overwritten",
    ("2", "starcluster start"): "starcluster/launch/test_plan.py::test_the_cap_refuses_more",
    ("3", "spearmint promote"): "spearmint/final/test_final.py::test_the_best_of_each_region",
    ("130", "all"): f"{HERE}::test_ctrl_c",
    ("143", "spearmint run"): f"{HERE}::test_sigterm_stops_a_search",
    ("129", "starcluster"): "starcluster/commands/test_signals.py::test_each_signal_ends_a_start",
    ("other", "sge-jobs run"): f"{SGE}::test_a_log_that_is_out_of_reach_ends_nothing",
    ("other", "starcluster sshmaster"): "starcluster/commands/test_login.py::test_ssh_that_gets_no",
    (
        "other",
        "spearmint run --run-job FOLDER",
    ): "spearmint/cli/test_cli.py::test_run_job_runs_one_folder",
}
"""The test of each row: its file below ``tests`` and the start of its name."""


def rows() -> list[tuple[str, str]]:
    page = (DOCS / "reference" / "exit_codes.rst").read_text()
    table = page[: page.index("A trial's own exit status")]
    found = re.findall(r"^   \* - (\w+)\n     - (.*)$", table, re.MULTILINE)
    return [(code, program.strip("`")) for code, program in found if code != "Code"]


def test_each_row_has_a_test() -> None:
    assert set(rows()) == set(TESTS)
    for place in TESTS.values():
        file, _, name = place.partition("::")
        assert f"def {name}" in (ROOT / "tests" / file).read_text(), place


@pytest.mark.parametrize(
    "package", ["spearmint", "starcluster", "sge_jobs", "condor_jobs", "pycuda_nn"]
)
def test_help_is_done(package: str) -> None:
    assert commands.run(package, "--help").returncode == 0


@pytest.mark.parametrize(
    ("package", "command"),
    [("spearmint", "run"), ("starcluster", "start"), ("sge_jobs", "gpus"), ("pycuda_nn", "train")],
)
def test_a_wrong_option_is_refused(package: str, command: str) -> None:
    done = commands.run(package, command, "--no-such-option")
    assert done.returncode == 2
    assert "--no-such-option" in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        *("status", "best", "export", "report", "check", "final", "promote"),
        *("show", "stop", "retry", "note", "tag"),
    ],
)
def test_a_directory_without_a_search(command: str, tmp_path: Path) -> None:
    (tmp_path / "config.pb").write_text(CONFIG)
    trial = ("7",) if command in {"show", "stop", "retry", "note", "tag"} else ()
    assert commands.spearmint(command, tmp_path, *trial).returncode == 2


def closed_pipe() -> int:
    """Return the end for writing of a pipe that nobody reads."""
    read, write = os.pipe()
    os.close(read)
    return write


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("spearmint", ["--version"]),
        ("spearmint", ["status", "."]),
        ("spearmint", ["export", "--json", "."]),
        ("starcluster", ["--help"]),
        ("sge_jobs", ["scripts"]),
        ("pycuda_nn", ["--version"]),
    ],
)
def test_a_reader_that_has_gone_is_no_traceback(
    module: str, arguments: list[str], searched: Path
) -> None:
    write = closed_pipe()
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=searched,
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


CONFIG = 'language: PYTHON\nname: "t"\nvariable { name: "x" type: FLOAT min: 0 max: 1 }\n'
SLOW = """
import time

def main(job_id, params):
    time.sleep(600 if job_id > 2 else 0)
    return 1.0
"""


@pytest.fixture
def searched(tmp_path: Path) -> Path:
    (tmp_path / "config.pb").write_text(CONFIG)
    (tmp_path / "t.py").write_text(SLOW)
    argv = ("--method=RandomChooser", "--max-finished-jobs=1", tmp_path)
    assert commands.spearmint(*argv).returncode == 0
    return tmp_path


def test_a_search_that_nobody_watches_ends_with_its_trials(searched: Path) -> None:
    write = closed_pipe()
    done = subprocess.run(
        [sys.executable, "-m", "spearmint", "--method=RandomChooser", "-n3", "."],
        cwd=searched,
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert not runners(searched)


def runners(directory: Path) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_text().split("\0")
        except OSError:
            continue
        if "spearmint.trial.runner" in words and str(directory) in words[-2]:
            found.append(words[-2])
    return found


def test_sigterm_stops_a_search(searched: Path) -> None:
    controller = subprocess.Popen(
        [sys.executable, "-m", "spearmint", "--method=RandomChooser", "."],
        cwd=searched,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert controller.stdout is not None
    until(lambda: (searched / "jobs" / "00000003" / "runner.json").exists())
    controller.send_signal(signal.SIGTERM)
    said_until("Ctrl-C", controller)
    controller.send_signal(signal.SIGTERM)
    controller.communicate()
    assert controller.returncode == 143


def interrupts(*arguments: object, **options: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("package", "place", "arguments"),
    [
        ("spearmint", "spearmint.store.session.read_sessions", ["status", "."]),
        ("spearmint", "spearmint.config.reader.load_experiment", ["cleanup", "."]),
        ("spearmint", "spearmint.cli.init.copy_template", ["init", "new"]),
        ("starcluster", "starcluster.cli.app.Ec2", ["listclusters"]),
        ("sge_jobs", "sge_jobs.cli.scripts.run", ["scripts"]),
        ("pycuda_nn", "pycuda_nn.cli.train.load_splits", ["train", "--data=digits"]),
    ],
)
def test_ctrl_c(
    package: str,
    place: str,
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(place, interrupts)
    done = commands.run(package, *arguments, cwd=tmp_path)
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
