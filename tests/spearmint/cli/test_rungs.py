"""Commands on a search whose trials pause at rungs."""

from __future__ import annotations

import csv
import io
import json
import re
import signal
from collections import Counter

import pytest

from spearmint.config.reader import load_experiment
from spearmint.store.session import Session, run_sessions
from tests import commands
from tests.spearmint.conftest import ONE_FLOAT, ExperimentDir, MakeExperiment
from tests.waiting import until

CONFIG = ONE_FLOAT + 'fidelity { name: "epochs" min: 1 max: 4 reduction_factor: 2 }\n'
CODE = """
import os
from pathlib import Path
from spearmint import report, steps

def main(job_id, params):
    checkpoint = Path(os.environ["SPEARMINT_TRIAL_DIR"], "epoch.txt")
    done = int(checkpoint.read_text()) if checkpoint.exists() else 0
    for epoch in steps(4, after=done):
        with open("epochs.txt", "a") as file:
            file.write(f"{job_id}.{epoch} ")
        checkpoint.write_text(str(epoch))
        report(epoch, params["x"][0] + 1 / epoch)
    return params["x"][0] + 1 / epoch
"""


@pytest.fixture
def searched(make_experiment: MakeExperiment) -> ExperimentDir:
    experiment = make_experiment(CODE, CONFIG)
    done = experiment.run("--max-finished-jobs=4")
    assert done.returncode == 0, done.stderr
    assert "rungs at 1, 2, 4 epochs, reduction factor 2" in done.stdout
    assert "trial 1: paused at rung 1 with " in done.stdout
    return experiment


def test_all_commands_agree_on_paused_trials(searched: ExperimentDir) -> None:
    rows = json.loads(searched.command("export", "--json").stdout)
    states = Counter(row["state"] for row in rows)
    assert states["complete"] >= 1
    assert states["paused"] == 4 - states["complete"]
    status = json.loads(searched.command("status", "--json").stdout)
    assert (status["trials"]["paused"], status["trials"]["running"]) == (states["paused"], 0)
    assert status["rungs"]["1"] == 4
    assert status["rungs"]["4"] == states["complete"]
    text = searched.command("status").stdout
    assert f"{states['paused']} paused" in text
    assert "Rungs: 4 to 1 epochs, " in text
    table = list(csv.DictReader(io.StringIO(searched.command("export").stdout)))
    assert Counter(row["state"] for row in table) == states
    check_rung_facts(rows, table)
    best = json.loads(searched.command("best", "--json").stdout)
    assert best["state"] == "complete"
    assert len(best["rungs"]) == 2
    page = commands.spearmint("show", searched.root, str(best["id"])).stdout
    assert "Rung 2: " in page
    assert "Job 1: " in page
    assert "paused at 1 epochs" in page
    assert "steps 1 to 4" in page
    data = json.loads(commands.spearmint("show", searched.root, str(best["id"]), "--json").stdout)
    jobs = [attempt["seconds"] for attempt in data["attempts"]]
    assert len(jobs) == 3
    assert sum(jobs) == pytest.approx(best["seconds"])
    assert data["part_seconds"] == pytest.approx(jobs)
    assert "No problem" in searched.command("check").stdout
    assert searched.command("report").returncode == 0
    epochs = Counter((searched.root / "epochs.txt").read_text().split())
    assert set(epochs.values()) == {1}, "no epoch is trained twice"


def check_rung_facts(rows: list[dict], table: list[dict]) -> None:
    """Check that both forms of export have the steps, values and seconds of each part."""
    for row, line in zip(rows, table, strict=True):
        known = [*row["rungs"], *([row["value"]] if row["state"] == "complete" else [])]
        reached = (1, 2, 4)[: len(known)]
        assert row["steps_done"] == int(line["steps_done"]) == reached[-1]
        assert [float(line[f"value_at_{step}"]) for step in reached] == known
        assert [float(line[f"seconds_at_{step}"]) for step in reached] == row["part_seconds"]
        assert sum(row["part_seconds"]) == pytest.approx(row["seconds"])
        if row["state"] == "paused":
            assert line["value"] == line["value_at_4"] == line["seconds_at_4"] == ""


def test_the_best_paused_trial_is_recommended_before_any_is_complete(
    make_experiment: MakeExperiment,
) -> None:
    experiment = make_experiment(CODE, CONFIG)
    done = experiment.run("--max-finished-jobs=1")
    assert "0 complete trials (1 paused" in done.stdout
    shown = experiment.command("best").stdout
    assert "rung: 1 of 4 epochs; no trial is complete yet" in shown
    assert "best trials at 1 of 4 epochs" in experiment.command("status").stdout
    assert experiment.command("report").returncode == 0
    html = (experiment.root / "report" / "index.html").read_text()
    assert "best at 1 of 4 epochs" in html
    stopped = commands.spearmint("stop", experiment.root, "1")
    assert stopped.returncode == 0, stopped.stderr
    (row,) = json.loads(experiment.command("export", "--json").stdout)
    assert row["state"] == "broken"
    assert row["part_seconds"] == [row["seconds"]], "its second part did not begin"
    (line,) = csv.DictReader(io.StringIO(experiment.command("export").stdout))
    assert [line["seconds_at_1"], line["seconds_at_2"]] == [repr(row["seconds"]), ""]


def test_status_says_that_early_values_do_not_predict_the_last_ones(
    make_experiment: MakeExperiment,
) -> None:
    experiment = make_experiment(CODE, CONFIG)
    (session,) = run_sessions_of(experiment)
    for x in (1.0, 2.0, 3.0, 4.0, 5.0):
        session.study.add_complete({"x": (x / 8,)}, x, source="a test", rungs=[6 - x, x])
    text = experiment.command("status").stdout
    assert "The order at 1 epochs does not predict the order at 4: new trials continue to 2" in text
    assert json.loads(experiment.command("status", "--json").stdout)["compared_from"] == 2


def run_sessions_of(experiment: ExperimentDir) -> list[Session]:
    """Return the searches of an experiment that has no trial yet."""
    with run_sessions(load_experiment(experiment.config), None, driver="local") as sessions:
        return sessions


def test_best_and_report_say_at_which_rung_each_region_is(make_experiment: MakeExperiment) -> None:
    config = CONFIG + 'require: "x <= 0.9"\nregion: "de"\nregion: "us"\n'
    experiment = make_experiment(CODE, config)
    done = experiment.run("--max-finished-jobs=1")
    assert done.returncode == 0, done.stderr
    (experiment.root / "config.pb").write_text(config.replace("0.9", "0.0"))
    shown = experiment.command("best").stdout
    for region in ("de", "us"):
        assert f"{region}: 1 of 4 epochs; no trial is complete yet" in shown
        assert f"{region}: violates require: x <= 0.0" in shown
    assert experiment.command("report").returncode == 0
    html = (experiment.root / "report" / "index.html").read_text()
    assert html.count("at 1 of 4 epochs") == 2


def test_a_pruner_is_refused(make_experiment: MakeExperiment) -> None:
    done = make_experiment(CODE, CONFIG).run("--pruner=median")
    assert done.returncode == 2
    assert "a pruner and the block fidelity" in done.stderr


def test_a_stop_while_paused_trials_wait_does_not_say_that_all_are_finished(
    make_experiment: MakeExperiment,
) -> None:
    """Four of four trials are paused, and the first one that was resumed has just ended."""
    code = CODE.replace(
        "    for epoch",
        "    import time\n"
        "    known = Path('epochs.txt').read_text().split() if done else []\n"
        "    is_last = len({text.partition('.')[0] for text in known}) == 4\n"
        "    while is_last and not Path('released').exists():\n"
        "        Path('held').touch()\n"
        "        time.sleep(0.05)\n"
        "    for epoch",
    )
    experiment = make_experiment(code, CONFIG)
    controller = experiment.start("--max-finished-jobs=4")
    until((experiment.root / "held").exists, 120)
    controller.send_signal(signal.SIGTERM)
    text = ""
    while "Stopping" not in text:
        text += controller.stdout.readline()
    (experiment.root / "released").touch()
    text += controller.communicate()[0]
    assert controller.returncode == 128 + signal.SIGTERM
    found = re.search(r"stopped with (\d) of 4 trials finished and (\d) paused", text)
    assert found is not None, text
    assert int(found[1]) + int(found[2]) == 4
    done = experiment.run("--max-finished-jobs=4")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_kills_of_the_controller_train_no_epoch_twice(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment(
        CODE.replace("    return", "    import time; time.sleep(0.2)\n    return"), CONFIG
    )
    path = experiment.root / "epochs.txt"
    for size in (1, 4, 8, 12):
        controller = experiment.start("--max-finished-jobs=8", "-n2")
        until(lambda size=size: path.exists() and len(path.read_text().split()) >= size, 120)
        controller.send_signal(signal.SIGKILL)
        controller.wait()
        controller.stdout.close()
    done = experiment.run("--max-finished-jobs=8", "-n2")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(experiment.command("export", "--json").stdout)
    trained = [
        f"{row['id']}.{epoch}"
        for row in rows
        for epoch in range(
            1, {0: 1, 1: 2, 2: 4}[len(row["rungs"]) - (row["state"] == "paused")] + 1
        )
    ]
    assert Counter(path.read_text().split()) == Counter(trained)
    assert {row["state"] for row in rows} == {"complete", "paused"}
    assert len(rows) == 8
