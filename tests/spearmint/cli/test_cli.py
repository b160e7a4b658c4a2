from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import spearmint
from spearmint.cli.main import COMMANDS
from spearmint.store.opening import study_names
from spearmint.store.owner import _without_secrets
from spearmint.store.sql.sqlite import sqlite_url
from tests import commands
from tests.spearmint.conftest import ONE_FLOAT, ExperimentDir, MakeExperiment


@pytest.fixture
def searched(make_experiment: MakeExperiment) -> ExperimentDir:
    experiment = make_experiment()
    done = experiment.run("--max-finished-jobs=4", "--max-concurrent=2")
    assert done.returncode == 0, done.stderr
    return experiment


def test_a_search_ends_with_its_best_trials_and_the_original_files(searched: ExperimentDir) -> None:
    done = searched.run("--max-finished-jobs=4")
    assert done.returncode == 0
    assert re.search(r"\b4 complete\b.*\b0 broken\b", done.stdout)
    assert ": 1 dimension, " in done.stdout
    assert len(list(searched.root.glob("output/0000000[1-4].out"))) == 4
    assert (searched.root / "trace.csv").exists()
    assert (searched.root / "best_job_and_result.txt").exists()


def test_cancel_says_that_nothing_ran(searched: ExperimentDir) -> None:
    done = searched.run("--cancel")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 1)
    assert not re.search(r"\d", done.stdout), "no trial is named"


def test_status_best_and_export_agree(searched: ExperimentDir) -> None:
    rows = json.loads(searched.command("export", "--json").stdout)
    best = min(rows, key=lambda row: row["value"])
    assert json.loads(searched.command("best", "--json").stdout) == best
    status = json.loads(searched.command("status", "--json").stdout)
    assert status["best"] == best
    none = dict.fromkeys(("running", "queued", "pruned", "broken"), 0)
    assert status["trials"] == {"complete": 4, **none}
    assert status["controller"] is None
    assert f"trial: {best['id']}" in searched.command("best").stdout
    table = list(csv.DictReader(io.StringIO(searched.command("export").stdout)))
    assert [float(row["x"]) for row in table] == [row["params"]["x"][0] for row in rows]
    assert [float(row["value"]) for row in table] == [row["value"] for row in rows]
    written = searched.command("export", "--csv", "-o", str(searched.root / "t.csv"))
    assert written.returncode == 0
    assert (searched.root / "t.csv").read_text() == searched.command("export").stdout


_SIZE = "def main(job_id, params):\n    return float(params['größe→'][0])\n"


def test_export_writes_utf_8_under_any_locale(
    make_experiment: MakeExperiment, tmp_path: Path
) -> None:
    experiment = make_experiment(config=ONE_FLOAT.replace('"x"', '"größe"'), root=tmp_path / "a")
    with spearmint.Search(experiment.config, method="RandomChooser") as search:
        search.tell(search.ask(), 0.5)
    kept = experiment.root / "t.csv"
    kept.write_text("mine")
    for output in (kept, "-"):
        argv = [sys.executable, "-m", "spearmint", "export", "-o", output, experiment.root]
        ascii_ = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        done = subprocess.run(argv, capture_output=True, env={**os.environ, **ascii_}, check=False)
        assert done.returncode == 0, done.stderr
    assert kept.read_bytes() == done.stdout
    assert "größe" in kept.read_text(encoding="utf-8")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_name_can_be_printed_in_any_encoding(
    make_experiment: MakeExperiment, encoding: str
) -> None:
    experiment = make_experiment(config=ONE_FLOAT.replace('"x"', '"größe→"'), code=_SIZE)
    printed = {**os.environ, "PYTHONIOENCODING": encoding}
    for argv in (
        experiment.argv("--max-finished-jobs=1"),
        [sys.executable, "-m", "spearmint", "status", str(experiment.root)],
    ):
        done = subprocess.run(argv, capture_output=True, env=printed, check=False)
        assert done.returncode == 0, done.stderr
        text = done.stdout.decode("latin-1" if encoding == "latin-1" else "utf-8")
        assert ("größe\\u2192" if encoding == "latin-1" else "größe→") in text


def test_cleanup_leaves_config_and_code(searched: ExperimentDir) -> None:
    assert searched.command("cleanup").returncode == 0
    assert sorted(path.name for path in searched.root.iterdir() if path.name != "__pycache__") == [
        "config.pb",
        "trial.py",
    ]
    assert searched.command("status").returncode == 2


def test_cleanup_leaves_what_is_the_users(searched: ExperimentDir) -> None:
    mine = ["report/thesis.tex", "output/figure.csv", "regions/us.shp", "jobs/keep/weights.npz"]
    for name in mine:
        (searched.root / name).parent.mkdir(parents=True, exist_ok=True)
        (searched.root / name).write_text("mine")
    assert searched.command("report").returncode == 0
    assert searched.command("cleanup").returncode == 0
    files = {path for path in searched.root.rglob("*") if path.is_file()}
    left = {str(path.relative_to(searched.root)) for path in files if path.suffix != ".pyc"}
    assert left == {"config.pb", "trial.py", *mine}


def test_cleanup_leaves_job_files_of_the_original(searched: ExperimentDir) -> None:
    (searched.root / "jobs" / "00000001.pb").touch()
    assert searched.command("cleanup").returncode == 0
    assert [path.name for path in (searched.root / "jobs").iterdir()] == ["00000001.pb"]
    assert searched.run("--max-finished-jobs=1").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["statsu", "x"], ["'statsu'", "'status'?"]),
        (["--driver=lcoal"], ["'lcoal'", "'local'?"]),
        (["--gpus=1"], ["--gpus", "--driver=SGE"]),
        (["--queue-ahead=2"], ["--queue-ahead", "--driver=SGE"]),
        (["--pruner-args=n_startup_trials=2"], ["--pruner-args", "--pruner,", "config.pb"]),
        (["--port=8080"], ["--port", "--web-status"]),
        (["--target=nan"], ["--target", "'nan'"]),
        (["--max-cost=nan", "--cost-per-hour=1"], ["--max-cost", "'nan'"]),
        (["--storage=postgresql://HOST:PORT/DB"], ["'PORT'", "postgresql://HOST/DATABASE"]),
        (["--method=GPEIOptChoser"], ["'GPEIOptChoser'", "'GPEIOptChooser'?"]),
        (["--method-args=mcmc_itres=3"], ["mcmc_itres", "mcmc_iters"]),
        (["--max-concurrent=0"], ["--max-concurrent", "0"]),
        (["--trial-timeout=soon"], ["--trial-timeout", "'soon'", "90, 90s, 15m, 2h "]),
        (["--polling-time=nan"], ["--polling-time", "'nan'", "90, 90s, 15m, 2h "]),
        (["--method=BruteForceSampler"], ["BruteForceSampler", "--method"]),
        (["--storage=nonsense"], ["sqlite:////path/to/file.db"]),
        (["absent/config.pb"], ["absent/config.pb"]),
        (["--warm-start=2", "--max-finished-jobs=1"], ["--warm-start", "--regions", "config.pb"]),
        (["run"], ["'CONFIG'"]),
        (["~nobody.of.this.name/config.pb"], ["~nobody.of.this.name/config.pb"]),
        (["status", "--top=-1"], ["--top", "-1"]),
    ],
)
def test_wrong_input_exits_with_2_and_says_why(
    make_experiment: MakeExperiment, arguments: list[str], facts: list[str]
) -> None:
    experiment = make_experiment()
    has_config = not arguments[0].startswith("-")
    done = commands.spearmint(*arguments, *([] if has_config else [experiment.config]))
    assert done.returncode == 2, done.stdout + done.stderr
    for fact in facts:
        assert fact in done.stderr
    assert "Traceback" not in done.stderr


def test_on_windows_it_names_wsl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    done = commands.spearmint("status")
    assert (done.returncode, "WSL 2" in done.stderr) == (2, True)


def test_help_is_also_a_word() -> None:
    assert commands.spearmint("help").stdout == commands.spearmint("--help").stdout
    assert commands.spearmint("help", "best").stdout == commands.spearmint("best", "--help").stdout


@pytest.mark.parametrize("command", [["run", "--max-finished-jobs=1"], ["status"], ["report"]])
def test_a_directory_that_the_locale_cannot_name_is_wrong_input(
    searched: ExperimentDir, tmp_path: Path, command: list[str]
) -> None:
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/d\xe4ten"))
    shutil.copytree(searched.root, root)
    done = commands.spearmint(*command, root)
    assert done.returncode == 2
    assert "LC_ALL" in done.stderr


def test_a_storage_that_cannot_be_opened_says_why(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment()
    done = commands.spearmint("--storage=sqlite:////nowhere/trials.db", experiment.config)
    assert done.returncode == 1
    assert "Create its directory" in done.stderr


def test_a_changed_config_is_refused_with_the_difference(searched: ExperimentDir) -> None:
    searched.config.write_text(searched.config.read_text().replace("max: 1", "max: 2"))
    done = searched.run()
    assert done.returncode == 2
    assert re.search(r"x: .*FLOAT from 0 to 1\b.* FLOAT from 0 to 2\b", done.stderr)
    assert searched.command("cleanup").returncode == 0
    assert searched.run("--max-finished-jobs=1").returncode == 0


def test_a_changed_config_goes_on_elsewhere_as_the_message_says(
    searched: ExperimentDir, make_experiment: MakeExperiment, tmp_path: Path
) -> None:
    wider = searched.config.read_text().replace("max: 1", "max: 2")
    n_before = searched.command("export").stdout.count("complete")
    searched.config.write_text(wider)
    fix = searched.run().stderr
    assert f"spearmint import NEW {shlex.quote(str(searched.root))}" in fix
    new = make_experiment(config=wider, root=tmp_path / "new")
    assert commands.spearmint("import", new.root, searched.root).returncode == 0
    assert new.command("export").stdout.count("complete") == n_before > 0


def test_a_directory_holds_one_experiment(searched: ExperimentDir) -> None:
    other = searched.root / "other.pb"
    other.write_text(searched.config.read_text().replace('"trial"', '"other"'))
    searched.config = other
    shutil.copy(searched.root / "trial.py", searched.root / "other.py")
    done = searched.run()
    assert done.returncode == 2
    assert re.search(r"'trial'.* 'other'", done.stderr)
    assert "spearmint cleanup" in done.stderr
    assert study_names(sqlite_url(searched.root / "spearmint.db")) == ["trial"]


def test_the_config_may_have_any_name(searched: ExperimentDir) -> None:
    searched.config.rename(searched.root / "mine.pb")
    assert searched.command("status").returncode == 0
    searched.config.write_text("")
    searched.config.rename(searched.root / "other.pb")
    done = searched.command("status")
    assert done.returncode == 2
    assert "mine.pb, other.pb" in done.stderr


def test_the_next_command_can_be_pasted(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment("def main(job_id, params):\n    return 1 / (job_id - 1)\n")
    done = experiment.run("--max-finished-jobs=1")
    line = re.search(r"(?<=: )spearmint status .*", done.stdout)
    assert line
    _, *words = shlex.split(line.group())
    shown = commands.spearmint(*words)
    assert re.search(r"trial 1 .*: ZeroDivisionError", shown.stdout)


def test_the_driver_and_method_go_by_any_case(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment()
    done = experiment.run("--driver=LOCAL", "--method=tpesampler", "--max-finished-jobs=2")
    assert done.returncode == 0, done.stderr


def test_another_storage_is_remembered(make_experiment: MakeExperiment, tmp_path: Path) -> None:
    experiment = make_experiment()
    url = f"sqlite:///{tmp_path}/elsewhere.db"
    assert experiment.run(f"--storage={url}", "--max-finished-jobs=2").returncode == 0
    assert not (experiment.root / "spearmint.db").exists()
    status = json.loads(experiment.command("status", "--json").stdout)
    assert status["trials"]["complete"] == 2
    assert experiment.command("cleanup").returncode == 0
    assert experiment.run("--max-finished-jobs=1").returncode == 0
    assert json.loads(experiment.command("status", "--json").stdout)["trials"]["complete"] == 1


def test_run_job_runs_one_folder_in_the_foreground(searched: ExperimentDir) -> None:
    folder = searched.root / "jobs" / "00000001"
    done = searched.run(f"--run-job={folder}")
    assert done.returncode == 2
    assert shlex.quote(str(folder / "result.json")) in done.stderr
    (folder / "result.json").unlink()
    done = searched.run(f"--run-job={folder / 'trial.json'}")
    assert done.returncode == 0
    assert (folder / "result.json").exists()


def test_a_terminal_gets_a_live_line(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment()
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        experiment.argv("--max-finished-jobs=2"),
        stdout=follower,
        stderr=follower,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(follower)
    seen = b""
    while True:
        try:
            chunk = os.read(leader, 4096)
        except OSError:
            break
        if not chunk:
            break
        seen += chunk
    os.close(leader)
    assert process.wait() == 0
    assert b"2/2" in seen
    assert b"best " in seen


def test_a_wrong_method_leaves_nothing(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment()
    assert experiment.run("--method=GPEIOptChoser").returncode == 2
    assert sorted(path.name for path in experiment.root.iterdir()) == ["config.pb", "trial.py"]


def test_readers_create_nothing(make_experiment: MakeExperiment, tmp_path: Path) -> None:
    experiment = make_experiment()
    for command in ("status", "best", "export", "report"):
        done = experiment.command(command, f"--storage=sqlite:///{tmp_path}/typo.db")
        assert done.returncode == 2, command
        assert "'trial'" in done.stderr
        assert shlex.quote(str(experiment.config)) in done.stderr
    assert not (tmp_path / "typo.db").exists()
    assert not (experiment.root / "spearmint.db").exists()


def test_one_search_has_one_storage(searched: ExperimentDir, tmp_path: Path) -> None:
    done = searched.run(f"--storage=sqlite:///{tmp_path}/b.db")
    assert done.returncode == 2
    assert f"sqlite:///{tmp_path}/b.db" in done.stderr
    assert "spearmint cleanup" in done.stderr


def test_two_directories_do_not_share_one_study(
    make_experiment: MakeExperiment, tmp_path: Path
) -> None:
    storage = f"--storage=sqlite:///{tmp_path}/shared.db"
    first = make_experiment(root=tmp_path / "first")
    assert first.run(storage, "--max-finished-jobs=2").returncode == 0
    second = make_experiment(root=tmp_path / "second")
    done = second.run(storage, "--max-finished-jobs=2")
    assert done.returncode == 2
    assert str(first.root) in done.stderr
    second.command("cleanup", storage)
    assert json.loads(first.command("status", "--json").stdout)["trials"]["complete"] == 2
    shutil.copytree(first.root, tmp_path / "copy")
    copy = make_experiment(root=tmp_path / "copy")
    done = copy.run("--max-finished-jobs=3")
    assert done.returncode == 2
    assert all(str(root) in done.stderr for root in (copy.root, first.root))
    first.root.rename(tmp_path / "moved")
    moved = make_experiment(root=tmp_path / "moved")
    assert moved.run("--max-finished-jobs=3").returncode == 0


def test_a_lost_state_folder_locks_nobody_out(searched: ExperimentDir) -> None:
    shutil.rmtree(searched.root / ".spearmint")
    assert searched.run("--max-finished-jobs=5").returncode == 0
    assert json.loads(searched.command("status", "--json").stdout)["trials"]["complete"] == 5


def test_the_parts_of_a_url_that_are_secret_are_not_written() -> None:
    for url in (
        "postgresql://user:hunter2@host/db",
        "postgresql://host/db?user=u&password=hunter2",
        "mysql://host/db?passwd=hunter2",
    ):
        stored, secret = _without_secrets(url)
        assert "hunter2" not in stored
        assert secret
    assert _without_secrets("postgresql://host/db") == ("postgresql://host/db", False)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_list_of_commands_has_the_first_sentence_of_each_help(name: str) -> None:
    summary = COMMANDS[name][1]
    own = " ".join(commands.spearmint(name, "--help").stdout.split())
    assert f" {summary} " in own
    listed = " ".join(commands.spearmint("--help").stdout.split())
    assert f" {name} {summary}" in listed


@pytest.mark.parametrize("name", [None, *sorted(COMMANDS)])
def test_each_help_shows_lines_to_type(name: str | None) -> None:
    done = commands.spearmint(*([name] if name else []), "--help")
    assert done.returncode == 0
    examples = done.stdout.partition("Examples:")[2].strip().splitlines()
    assert len([line for line in examples if line.strip().startswith("spearmint")]) >= 2
