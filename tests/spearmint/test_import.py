"""``spearmint import`` as users run it: what gets in, what does not, and what it says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from spearmint import Search
from spearmint.choosers.history import common_space, history, trials_of
from spearmint.cli.main import main
from spearmint.importing.original_job_pb2 import OriginalJob
from spearmint.session import read_session
from spearmint.sqlite import sqlite_url

from .conftest import ExperimentDir, MakeExperiment

Import = Callable[..., str]
CONFIG = """
language: PYTHON name: "trial"
variable { name: "X" type: FLOAT size: 2 min: 0 max: 1 }
variable { name: "n" type: INT min: 1 max: 9 }
variable { name: "act" type: ENUM options: "relu" options: "tanh" }
"""
CODE = "def main(job_id, params):\n    return float(params['X'][0])\n"
ROWS = "X[0],X[1],n,act,value,seconds,note\n0.1,0.2,3,relu,1.5,2.25,a\n0.3,0.4,5,tanh,0.5,,b\n"


@pytest.fixture
def experiment(make_experiment: MakeExperiment) -> ExperimentDir:
    return make_experiment(CODE, CONFIG)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "earlier results.csv"
    path.write_text(ROWS)
    return path


@dataclass(frozen=True)
class Importer:
    """Runs ``spearmint import`` in this process, with what ``main`` makes of errors."""

    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def run(self, experiment: ExperimentDir, source: Path | str, *options: str) -> tuple[int, str]:
        argv = ["spearmint", "import", *options, str(experiment.config), str(source)]
        self.monkeypatch.setattr(sys, "argv", argv)
        with pytest.raises(SystemExit) as ended:
            main()
        said = self.capsys.readouterr()
        return int(ended.value.code or 0), said.err or said.out


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Import:
    """Import, and return what was said."""
    importer = Importer(monkeypatch, capsys)

    def run(experiment: ExperimentDir, source: Path | str, *options: str) -> str:
        code, said = importer.run(experiment, source, *options)
        assert code == 0, said
        return said

    return run


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Import:
    """Import what is wrong input, and return what was said."""
    importer = Importer(monkeypatch, capsys)

    def run(experiment: ExperimentDir, source: Path | str, *options: str) -> str:
        code, said = importer.run(experiment, source, *options)
        assert code == 2, said
        return said

    return run


def search(experiment: ExperimentDir, *values: float | None, storage: str | None = None) -> None:
    """Run trials that end with ``values``."""
    with Search(experiment.config, method="RandomChooser", storage=storage) as controller:
        for value in values:
            controller.tell(controller.ask(), value)


def exported(experiment: ExperimentDir) -> list[dict[str, object]]:
    return [trial.to_json() for trial in read_session(experiment.config, None).study.trials()]


def optuna_study(experiment: ExperimentDir) -> optuna.Study:
    return optuna.load_study(
        study_name="trial", storage=sqlite_url(experiment.root / "spearmint.db")
    )


def test_rows_become_complete_trials_with_their_origin(
    imported: Import, experiment: ExperimentDir, rows: Path
) -> None:
    output = imported(experiment, rows)
    assert "Imported 2 trials from earlier results.csv into 'trial'" in output
    assert "Not used: note" in output
    first, second = exported(experiment)
    assert first["params"] == {"X": [0.1, 0.2], "n": [3], "act": ["relu"]}
    assert (first["value"], first["seconds"], first["state"]) == (1.5, 2.25, "complete")
    assert (second["value"], second["seconds"]) == (0.5, None)
    status = json.loads(experiment.command("status", "--json").stdout)
    assert status["trials"] == {"running": 0, "complete": 2, "broken": 0}
    assert status["best"]["id"] == 2
    trials = optuna_study(experiment).trials
    assert [trial.user_attrs["imported"] for trial in trials] == [
        "earlier results.csv, line 2",
        "earlier results.csv, line 3",
    ]


def test_the_search_goes_on_from_imported_trials(
    imported: Import, experiment: ExperimentDir, rows: Path
) -> None:
    imported(experiment, rows)
    done = experiment.run("--max-finished-jobs=2")
    assert done.returncode == 0, done.stderr
    assert "Best of 2 complete trials" in done.stdout  # both are imported, nothing ran
    study = optuna_study(experiment)
    past = history(study, trials_of(study, -1), common_space(study.trials))
    assert sorted(past.y) == [0.5, 1.5]
    with Search(experiment.config) as search:
        assert search.ask().id == 3
    assert experiment.command("report").returncode == 0


def test_the_command_itself(experiment: ExperimentDir, rows: Path) -> None:
    argv = [sys.executable, "-m", "spearmint", "import", str(experiment.config), str(rows)]
    for bad, code in (("", 0), ("2,2,2,relu,2,,\n", 2)):
        rows.write_text(ROWS + bad)
        assert subprocess.run(argv, capture_output=True, check=False).returncode == code


def test_a_source_is_imported_once(imported: Import, experiment: ExperimentDir, rows: Path) -> None:
    imported(experiment, rows)
    rows.write_text(ROWS + "0.5,0.6,7,relu,2.5,,c\n")
    output = imported(experiment, rows)
    assert "Imported 1 trial from" in output
    assert "Already there: 2 trials" in output
    assert len(exported(experiment)) == 3
    assert "Imported 0 trials" in imported(experiment, rows)
    assert len(exported(experiment)) == 3


def test_an_evaluation_repeated_in_the_source_stays_repeated(
    imported: Import, experiment: ExperimentDir, rows: Path
) -> None:
    rows.write_text(ROWS + ROWS.splitlines()[1] + "\n")
    for _ in range(2):
        imported(experiment, rows)
        assert sorted(float(str(row["value"])) for row in exported(experiment)) == [0.5, 1.5, 1.5]


def test_an_export_comes_back(
    imported: Import, experiment: ExperimentDir, make_experiment: MakeExperiment, tmp_path: Path
) -> None:
    source = make_experiment(CODE, CONFIG, tmp_path / "source")
    search(source, 0.1, None, 1 / 3, float("inf"), -1e-300)
    source.command("export", "-o", str(tmp_path / "out.csv"))
    assert "without a finite value" in imported(experiment, tmp_path / "out.csv")
    there = [(row["params"], row["value"]) for row in exported(source) if row["id"] in (1, 3, 5)]
    assert [(row["params"], row["value"]) for row in exported(experiment)] == there
    assert "Already there: 3 trials" in imported(source, tmp_path / "out.csv")


def test_dry_run_stores_nothing(imported: Import, experiment: ExperimentDir, rows: Path) -> None:
    before = sorted(experiment.root.iterdir())
    assert "Would import 2 trials" in imported(experiment, rows, "--dry-run")
    assert sorted(experiment.root.iterdir()) == before
    imported(experiment, rows)
    rows.write_text(ROWS + "0.5,0.6,7,relu,2.5,,c\n")
    output = imported(experiment, rows, "-n")
    assert "Would import 1 trial from" in output
    assert "Already there: 2 trials" in output
    assert len(exported(experiment)) == 2


BAD = {
    "0.1,1.2,3,relu,1": "line 4, X[1]: 1.2 is outside of 0 to 1",
    "0.1,nan,3,relu,1": "line 4, X[1]: nan is outside of 0 to 1",
    "0.1,,3,relu,1": "line 4, X[1]: missing",
    "0.1,0.2,2.5,relu,1": "line 4, n: 2.5 is no whole number",
    "0.1,0.2,10,relu,1": "line 4, n: 10 is outside of 1 to 9",
    "0.1,0.2,few,relu,1": "line 4, n: 'few' is no number",
    "0.1,0.2,3,rleu,1": "line 4, act: 'rleu' is none of relu, tanh",
    "0.1,0.2,3,relu,good": "line 4, value: 'good' is no number",
}


@pytest.mark.parametrize("row", BAD)
def test_a_bad_row_is_named_and_nothing_is_imported(
    refused: Import, experiment: ExperimentDir, rows: Path, row: str
) -> None:
    rows.write_text(ROWS + row + ",,\n")
    assert BAD[row] in refused(experiment, rows)
    assert not (experiment.root / "spearmint.db").exists()


def test_all_problems_are_listed_at_once_or_skipped(
    refused: Import, imported: Import, experiment: ExperimentDir, rows: Path
) -> None:
    rows.write_text(ROWS + "".join(f"{row},,\n" for row in BAD) + "2,3,3,relu,1,,\n")
    error = refused(experiment, rows)
    assert "9 rows cannot be imported" in error
    assert "line 5, X[1]: nan" in error
    assert "line 12, X[0]: 2 is outside of 0 to 1\n  line 12, X[1]: 3 is outside" in error
    output = imported(experiment, rows, "--skip-bad")
    assert "Imported 2 trials" in output
    assert "Skipped 9 bad rows:" in output
    assert "line 11, value: 'good' is no number" in output


@pytest.mark.parametrize("value", ["", " ", "nan", "inf", "-Infinity"])
def test_a_row_without_a_finite_value_is_skipped(
    imported: Import, experiment: ExperimentDir, rows: Path, value: str
) -> None:
    rows.write_text(f"{ROWS}0.1,0.2,3,relu,{value},,\n")
    output = imported(experiment, rows)
    assert "Imported 2 trials" in output
    assert "Skipped 1 row without a finite value" in output


def test_csv_as_spreadsheets_write_it(
    refused: Import, imported: Import, experiment: ExperimentDir, tmp_path: Path
) -> None:
    path = tmp_path / "sheet.csv"
    text = '\ufeff"loss","X[1]","X[0]",n,act,value\r\n0.5,0.2,1e-1,3.0, relu,"two\nlines"\r\n\r\n'
    path.write_text(text + "0.7,0.2,2,3,relu,\r\n", newline="")
    assert "line 5, X[0]: 2 is" in refused(experiment, path, "--value-column=loss")
    assert "Not used: value" in imported(experiment, path, "--value-column=loss", "--skip-bad")
    [trial] = exported(experiment)
    assert trial["params"] == {"X": [0.1, 0.2], "n": [3], "act": ["relu"]}
    assert trial["value"] == 0.5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "It is empty."),
        (ROWS.replace("act", "Act"), "no column 'act'"),
        (ROWS.replace("act", "Act"), "Did you mean 'Act'?"),
        (ROWS.replace("note", "value"), "column 'value' has two meanings"),
        (ROWS + "1,2\n", "csv:4: 2 cells, the header has 7"),
        (ROWS.replace(",", ";"), "no column 'X[0]', 'X[1]', 'n', 'act', 'value'"),
    ],
)
def test_a_file_of_another_shape_is_refused(
    refused: Import, experiment: ExperimentDir, rows: Path, text: str, words: str
) -> None:
    rows.write_text(text)
    assert words in refused(experiment, rows, "--skip-bad")


def test_a_running_search_is_left_alone(
    refused: Import, imported: Import, experiment: ExperimentDir, rows: Path
) -> None:
    with Search(experiment.config):
        assert "is already being run" in refused(experiment, rows)
    assert "Imported 2 trials" in imported(experiment, rows)


def write_job(folder: Path, number: int, **fields: object) -> Path:
    """Write a job file as the original does."""
    job = OriginalJob(id=number, expt_dir=str(folder), name="trial", language="PYTHON")
    for name, value in fields.items():
        setattr(job, name, value)
    job.param.add(name="X", dbl_val=[0.1 * number, 0.5])
    job.param.add(name="n", int_val=[number])
    job.param.add(name="act", str_val=["tanh"])
    (folder / "jobs").mkdir(parents=True, exist_ok=True)
    path = folder / "jobs" / f"{number:08d}.pb"
    path.write_bytes(job.SerializeToString())
    return path


@pytest.fixture
def original(tmp_path: Path) -> Path:
    folder = tmp_path / "braninpy"
    write_job(folder, 1, status="complete", value=3.5, duration=1.25)
    write_job(folder, 2, status="broken", duration=0.1)
    write_job(folder, 3, status="running", value=1.0)
    write_job(folder, 10, status="complete", value=-1.0)
    (folder / "config.pb").write_text(CONFIG)
    return folder


def test_jobs_of_the_original(
    refused: Import, imported: Import, experiment: ExperimentDir, original: Path
) -> None:
    error = refused(experiment, original)
    assert "00000010.pb, n: 10 is outside of 1 to 9" in error
    write_job(original, 4, status="complete", value=-2.0)
    (original / "jobs" / "00000010.pb").unlink()
    for source in (original, original / "jobs"):
        output = imported(experiment, source)
        assert "Skipped 2 rows without a finite value" in output
    assert "Already there: 2 trials" in output
    first, second = exported(experiment)
    assert first["params"] == {"X": [0.1, 0.5], "n": [1], "act": ["tanh"]}
    assert (first["value"], first["seconds"]) == (3.5, 1.25)
    assert second["value"] == -2.0
    assert optuna_study(experiment).trials[1].user_attrs == {
        "imported": "braninpy/jobs, 00000004.pb"
    }


def test_the_wire_format_is_the_originals(
    imported: Import, experiment: ExperimentDir, tmp_path: Path
) -> None:
    """Field numbers and types by hand, against a schema and a file that are wrong together."""
    x = b"\x0a\x01X" + b"\x21\x00\x00\x00\x00\x00\x00\xe0\x3f" * 2  # name = 1, dbl_val = 4
    n = b"\x0a\x01n" + b"\x10\x07"  # int_val = 2, varint
    act = b"\x0a\x03act" + b"\x1a\x04relu"  # str_val = 3
    raw = b"\x08\x01" + b"\x12\x02/e" + b"\x1a\x01b" + b"\x20\x02"  # id, expt_dir, name, language
    raw += b"\x2a\x08complete"  # status = 5
    raw += b"".join(b"\x32" + bytes([len(param)]) + param for param in (x, n, act))
    raw += b"\x51\x00\x00\x00\x00\x00\x00\xf8\x3f" + b"\x59\x00\x00\x00\x00\x00\x00\x00\x40"
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "00000001.pb").write_bytes(raw)
    imported(experiment, tmp_path)
    [trial] = exported(experiment)
    assert trial["params"] == {"X": [0.5, 0.5], "n": [7], "act": ["relu"]}
    assert (trial["value"], trial["seconds"]) == (1.5, 2.0)


def test_the_original_ran_in_the_same_directory(
    imported: Import, experiment: ExperimentDir
) -> None:
    write_job(experiment.root, 1, status="complete", value=3.5)
    search(experiment, 1.0)
    assert "Imported 1 trial from" in imported(experiment, experiment.root)


def test_files_that_are_no_jobs_are_all_named(
    refused: Import, experiment: ExperimentDir, original: Path
) -> None:
    (original / "jobs" / "00000010.pb").write_text("language: PYTHON")
    (original / "jobs" / "00000011.pb").write_text("language: PYTHON")
    error = refused(experiment, original)
    assert "00000010.pb" in error
    assert "00000011.pb" in error


@pytest.fixture
def foreign(tmp_path: Path) -> str:
    """A storage with two studies that spearmint did not make."""
    url = sqlite_url(tmp_path / "foreign.db")
    space = {
        "X[0]": FloatDistribution(-5, 5),
        "X[1]": FloatDistribution(-5, 5),
        "n": IntDistribution(0, 100),
        "act": CategoricalDistribution(["tanh", "relu", "elu"]),
        "lr": FloatDistribution(0, 1),
    }
    for name in ("mine", "other"):
        study = optuna.create_study(study_name=name, storage=url)
        study.enqueue_trial({"X[0]": 0.25, "X[1]": 0.5, "n": 4, "act": "relu", "lr": 0.5})
        study.tell(study.ask(space), 0.75)
        study.tell(study.ask(space), state=optuna.trial.TrialState.FAIL)
        study.ask(space)
    return url


def test_a_study_of_any_optuna_storage(
    refused: Import, imported: Import, experiment: ExperimentDir, foreign: str
) -> None:
    assert "There are: mine, other. Choose one with --study." in refused(experiment, foreign)
    error = refused(experiment, foreign, "--study=mien")
    assert "no study 'mien'" in error
    assert "Did you mean 'mine'?" in error
    output = imported(experiment, foreign, "--study=mine")
    assert "Imported 1 trial from study mine into 'trial'" in output
    assert "Skipped 2 rows without a finite value" in output
    assert "Not used: lr" in output
    [trial] = exported(experiment)
    assert trial["params"] == {"X": [0.25, 0.5], "n": [4], "act": ["relu"]}


def test_the_directory_of_another_search(
    refused: Import,
    imported: Import,
    experiment: ExperimentDir,
    make_experiment: MakeExperiment,
    tmp_path: Path,
) -> None:
    source = make_experiment(CODE, CONFIG, tmp_path / "source")
    url = sqlite_url(tmp_path / "elsewhere.db")
    search(source, 1.0, 2.0, 3.0, storage=url)
    assert "Imported 3 trials from study trial" in imported(experiment, source.root)
    taken = exported(experiment)
    assert [(row["value"], row["seconds"]) for row in taken] == [
        (row["value"], row["seconds"]) for row in exported(source)
    ]
    maximizing = make_experiment(CODE, CONFIG + "direction: MAXIMIZE", tmp_path / "maximizing")
    assert "to minimize" in refused(maximizing, source.root)


def test_import_leaves_the_driver_of_the_search(
    imported: Import, experiment: ExperimentDir, rows: Path
) -> None:
    search(experiment, 1.0)
    known = experiment.root / ".spearmint" / "experiment.json"
    known.write_text(known.read_text().replace('"local"', '"SGE"'))
    imported(experiment, rows)
    assert json.loads(known.read_text())["driver"] == "SGE"


@pytest.mark.parametrize(
    ("source", "option", "words"),
    [
        ("absent.csv", "--skip-bad", "no such file or directory: absent.csv"),
        ("sqlite:////absent/x.db", "--skip-bad", "no such file: /absent/x.db"),
        ("nonsense://x", "--skip-bad", "storage cannot be"),
        (".", "--value-column=x", "--value-column is for CSV files"),
        ("CSV", "--study=x", "--study is for storages"),
        ("DIR", "--skip-bad", "no results in"),
        ("DATABASE", "--skip-bad", "is a database, not CSV"),
    ],
)
def test_other_sources_are_refused(
    refused: Import,
    experiment: ExperimentDir,
    rows: Path,
    tmp_path: Path,
    source: str,
    option: str,
    words: str,
) -> None:
    optuna.create_study(storage=sqlite_url(tmp_path / "some.db"))
    (tmp_path / "empty").mkdir()
    names = {"CSV": rows, "DIR": tmp_path / "empty", "DATABASE": tmp_path / "some.db"}
    assert words in refused(experiment, names.get(source, source), option)
