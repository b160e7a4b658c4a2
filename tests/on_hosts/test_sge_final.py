"""Single trials and final models on a real Grid Engine, with a killed controller."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.on_hosts.conftest import MakeSearch
from tests.on_hosts.searches import CODE, CONFIG
from tests.testbed.cell import UID, Cell
from tests.waiting import until

pytestmark = pytest.mark.sge

REGIONS = 'region: "de"\nregion: "us"\n'
# The last region waits until the test has killed the command.
FINAL = """

def final(job_id, params, model_dir):
    while os.environ["SPEARMINT_REGION"] == "us" and Path(f"{{RUNS}}.final").exists():
        time.sleep(0.1)
    (model_dir / "job").write_text(os.environ["JOB_ID"])
    time.sleep(3)
    with Path("trained.txt").open("a") as file:  # in the directory of config.pb
        file.write(os.environ["SPEARMINT_REGION"] + "\\n")
    return {{"value": 0.25, "n": 100}}
"""


def test_each_region_is_trained_once_by_a_job_and_promoted(
    cell: Cell, make_search: MakeSearch
) -> None:
    search = make_search(trials=2, steps=5, regions=2, config=CONFIG + REGIONS, code=CODE + FINAL)
    gate = cell.shared / "runs" / f"{search.directory.name}.final"
    gate.touch()
    controller = search.start("--then-final")
    controller.wait_for("is trained")
    controller.kill()
    gate.unlink()
    search.start("--then-final").end()
    trained = (search.directory / "trained.txt").read_text().split()
    assert sorted(trained) == ["de", "us"]
    search.command("promote")
    for region in ("de", "us"):
        link = search.directory / "models" / region / "current"
        assert link.readlink() == Path("00000001")
        (job,) = json.loads((link / "provenance.json").read_text())["jobs"]
        assert job["job"] == (link / "files" / "job").read_text()
        assert job["gpus"]
    assert cell.run("spearmint", "promote", str(search.directory), uid=UID).returncode == 3
    search.assert_complete()


@pytest.mark.parametrize("killed", [False, True], ids=["with", "without"])
def test_a_trial_is_stopped_with_and_without_a_controller(
    cell: Cell, make_search: MakeSearch, killed: bool
) -> None:
    search = make_search(f"stop{killed}", trials=3, steps=10)
    controller = search.start()
    victim = search.wait_running(3)[0]
    number = str(victim.trial)
    shown = json.loads(
        cell.checked("spearmint", "show", str(search.directory), number, "--json", uid=UID)
    )
    assert shown["attempts"][-1]["job"] == victim.job
    assert shown["attempts"][-1]["host"] == victim.host
    if killed:
        controller.kill()
    cell.checked("spearmint", "stop", str(search.directory), number, uid=UID)
    until(lambda: victim.job not in search.jobs_in("r"), 60, 0.5)
    if killed:
        controller = search.start()
    controller.end()
    states = {trial["id"]: trial["state"] for trial in search.trials()}
    assert states.pop(victim.trial) == "broken"
    assert list(states.values()) == ["complete"] * 3
    assert sum(run.trial == victim.trial for run in search.runs()) == 1, "it was retried"
