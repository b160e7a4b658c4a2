"""Rows of a CSV file are imported once; messages name the rows that are wrong."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from spearmint import Search
from spearmint.choosers.history import common_space, history, trials_of
from tests import commands
from tests.spearmint.conftest import ExperimentDir, MakeExperiment
from tests.spearmint.importing.conftest import (
    CODE,
    CONFIG,
    ROWS,
    Import,
    counts,
    exported,
    optuna_study,
    search,
)


def test_rows_become_complete_trials_with_their_origin(
    imported: Import, experiment: ExperimentDir, rows: Path
) -> None:
    output = imported(experiment, rows)
    assert counts(output) == ["2 trials"]
    assert all(fact in output for fact in ("earlier results.csv", "'trial'", "note"))
    first, second = exported(experiment)
    assert first["params"] == {"X": [0.1, 0.2], "n": [3], "act": ["relu"]}
    assert (first["value"], first["seconds"], first["state"]) == (1.5, 2.25, "complete")
    assert (second["value"], second["seconds"]) == (0.5, None)
    status = json.loads(experiment.command("status", "--json").stdout)
    assert status["trials"] == {"running": 0, "queued": 0, "complete": 2, "pruned": 0, "broken": 0}
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
    assert not list((experiment.root / "output").iterdir()), "no trial ran"
    study = optuna_study(experiment)
    past = history(study, trials_of(study, -1), common_space(study.trials))
    assert sorted(past.y) == [0.5, 1.5]
    with Search(experiment.config) as search:
        assert search.ask().id == 3
    assert experiment.command("report").returncode == 0


def test_the_command_itself(experiment: ExperimentDir, rows: Path) -> None:
    for bad, code in (("", 0), ("2,2,2,relu,2,,\n", 2)):
        rows.write_text(ROWS + bad)
        assert commands.spearmint("import", experiment.config, rows).returncode == code


def test_a_source_is_imported_once(imported: Import, experiment: ExperimentDir, rows: Path) -> None:
    imported(experiment, rows)
    rows.write_text(ROWS + "0.5,0.6,7,relu,2.5,,c\n")
    output = imported(experiment, rows)
    assert counts(output) == ["1 trials", "2 trials"]
    assert len(exported(experiment)) == 3
    assert counts(imported(experiment, rows)) == ["0 trials", "3 trials"]
    assert len(exported(experiment)) == 3


def test_an_evaluation_repeated_in_the_source_stays_repeated(
    imported: Import, experiment: ExperimentDir, rows: Path
) -> None:
    imported(experiment, rows)
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
    assert counts(imported(experiment, tmp_path / "out.csv")) == ["3 trials", "2 rows"]
    there = [(row["params"], row["value"]) for row in exported(source) if row["id"] in (1, 3, 5)]
    assert [(row["params"], row["value"]) for row in exported(experiment)] == there
    assert counts(imported(source, tmp_path / "out.csv")) == ["0 trials", "3 trials", "2 rows"]


def test_a_pipe_is_refused(experiment: ExperimentDir, tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    done = commands.spearmint("import", experiment.config, pipe)
    assert done.returncode == 2
    assert f"{pipe} is neither a file nor a directory" in done.stderr


def test_dry_run_stores_nothing(imported: Import, experiment: ExperimentDir, rows: Path) -> None:
    before = sorted(experiment.root.iterdir())
    assert counts(imported(experiment, rows, "--dry-run")) == ["2 trials"]
    assert sorted(experiment.root.iterdir()) == before
    imported(experiment, rows)
    rows.write_text(ROWS + "0.5,0.6,7,relu,2.5,,c\n")
    assert counts(imported(experiment, rows, "-n")) == ["1 trials", "2 trials"]
    assert len(exported(experiment)) == 2


BAD = {
    "0.1,1.2,3,relu,1": "line 4, X[1]: 1.2 .* 0 .* 1",
    "0.1,nan,3,relu,1": "line 4, X[1]: nan .* 0 .* 1",
    "0.1,,3,relu,1": "line 4, X[1]: .*",
    "0.1,0.2,2.5,relu,1": "line 4, n: 2.5 .*",
    "0.1,0.2,10,relu,1": "line 4, n: 10 .* 1 .* 9",
    "0.1,0.2,few,relu,1": "line 4, n: 'few' .*",
    "0.1,0.2,3,rleu,1": "line 4, act: 'rleu' .* relu, tanh",
    "0.1,0.2,3,relu,good": "line 4, value: 'good' .*",
}
"""The line of the report by the row; ``.*`` stands for any text."""


@pytest.mark.parametrize("row", BAD)
def test_a_bad_row_is_named_and_nothing_is_imported(
    refused: Import, experiment: ExperimentDir, rows: Path, row: str
) -> None:
    rows.write_text(ROWS + row + ",,\n")
    found = [line.strip() for line in refused(experiment, rows).splitlines()]
    line = re.escape(BAD[row]).replace(r"\.\*", ".*")
    assert any(re.fullmatch(line, text) for text in found)
    assert not (experiment.root / "spearmint.db").exists()


def test_all_problems_are_listed_at_once_or_skipped(
    refused: Import, imported: Import, experiment: ExperimentDir, rows: Path
) -> None:
    rows.write_text(ROWS + "".join(f"{row},,\n" for row in BAD) + "2,3,3,relu,1,,\n")
    error = refused(experiment, rows)
    assert counts(error) == ["9 rows"]
    assert "--skip-bad" in error
    assert "line 5, X[1]: nan" in error
    assert "\n  line 12, X[0]: 2 " in error
    assert "\n  line 12, X[1]: 3 " in error
    output = imported(experiment, rows, "--skip-bad")
    assert counts(output) == ["2 trials", "9 rows"]
    assert "line 11, value: 'good'" in output


@pytest.mark.parametrize("value", ["", " ", "nan", "inf", "-Infinity"])
def test_a_row_without_a_finite_value_is_skipped(
    imported: Import, experiment: ExperimentDir, rows: Path, value: str
) -> None:
    rows.write_text(f"{ROWS}0.1,0.2,3,relu,{value},,\n")
    assert counts(imported(experiment, rows)) == ["2 trials", "1 rows"]


def test_csv_as_spreadsheets_write_it(
    refused: Import, imported: Import, experiment: ExperimentDir, tmp_path: Path
) -> None:
    path = tmp_path / "sheet.csv"
    text = '\ufeff"loss","X[1]","X[0]",n,act,value\r\n0.5,0.2,1e-1,3.0, relu,"two\nlines"\r\n\r\n'
    path.write_text(text + "0.7,0.2,2,3,relu,\r\n", newline="")
    assert "line 5, X[0]: 2 " in refused(experiment, path, "--value-column=loss")
    output = imported(experiment, path, "--value-column=loss", "--skip-bad")
    assert output.rstrip().endswith(": value"), "the last line lists unused columns"
    [trial] = exported(experiment)
    assert trial["params"] == {"X": [0.1, 0.2], "n": [3], "act": ["relu"]}
    assert trial["value"] == 0.5


@pytest.mark.parametrize(
    ("text", "facts", "options"),
    [
        ("", ["'X[0]', 'X[1]', 'n', 'act', 'value'"], []),
        (ROWS.replace("act", "Act"), ["'act'", "'Act'?", "X[0], X[1], n, Act"], []),
        (ROWS.replace("note", "value"), ["'value'", "--value-column"], []),
        (ROWS, ["'n'", "--value-column"], ["--value-column=n"]),
        (ROWS + "1,2\n", ["csv:4:", " 2 ", " 7"], []),
        (ROWS.replace(",", ";"), ["'X[0]', 'X[1]', 'n', 'act', 'value'"], []),
    ],
)
def test_a_file_of_another_shape_is_refused(
    refused: Import,
    experiment: ExperimentDir,
    rows: Path,
    text: str,
    facts: list[str],
    options: list[str],
) -> None:
    rows.write_text(text)
    error = refused(experiment, rows, "--skip-bad", *options)
    assert str(rows) in error
    assert all(fact in error for fact in facts)


def test_a_running_search_is_left_alone(
    refused: Import, imported: Import, experiment: ExperimentDir, rows: Path
) -> None:
    with Search(experiment.config):
        assert f"process {os.getpid()} " in refused(experiment, rows)
    assert counts(imported(experiment, rows)) == ["2 trials"]


def test_an_export_is_imported_if_variables_have_the_names_of_its_columns(
    make_experiment: MakeExperiment, tmp_path: Path
) -> None:
    names = ("value", "seconds", "steps_done", "params_seconds")
    config = 'language: PYTHON\nname: "trial"\n'
    config += 'fidelity { name: "epochs" min: 1 max: 2 reduction_factor: 2 }\n'
    config += "".join(f'variable {{ name: "{n}" type: FLOAT min: 0 max: 1 }}\n' for n in names)
    old = make_experiment(CODE, config, tmp_path / "old")
    with Search(old.config, method="RandomChooser") as searched:
        for value in (3.0, 2.0, 1.0):
            searched.tell(searched.ask(), value)
    expected = exported(old)
    file = tmp_path / "trials.csv"
    file.write_text(old.command("export").stdout)
    header = file.read_text().splitlines()[0].split(",")
    assert len(set(header)) == len(header)
    assert {*names, "params_value", "params_params_seconds", "params_steps_done"} <= {*header}
    new = make_experiment(CODE, config, tmp_path / "new")
    done = commands.spearmint("import", new.root, file)
    assert done.returncode == 0, done.stderr
    same = ("params", "value", "rungs")
    assert [[t[k] for k in same] for t in exported(new)] == [[t[k] for k in same] for t in expected]
