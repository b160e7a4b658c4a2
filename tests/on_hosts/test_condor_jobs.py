"""DAGs of condor-jobs on a real HTCondor pool."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator

import pytest

from tests.testbed.cell import UID
from tests.testbed.condor import CondorPool
from tests.waiting import until

pytestmark = pytest.mark.htcondor

_CONFIG = """language: PYTHON
name: "quick"
region: "a"
region: "b"
variable { name: "x" type: FLOAT min: 0 max: 1 }
"""
_QUICK = "def main(job_id, params):\n    return float(params['x'][0])\n"
# Each run leaves a file. Evaluation of region b fails until the file "cured" exists, and waits for
# "go" then.
_STEP = """
import json, os, sys, time, uuid
from pathlib import Path

step, region = sys.argv[1], os.environ["CONDOR_JOBS_REGION"]
best = json.loads(Path(os.environ["CONDOR_JOBS_BEST"]).read_text())
model = Path(os.environ["CONDOR_JOBS_MODEL"])
Path("runs", f"{step}.{region}.{uuid.uuid4().hex}").touch()
if step == "retrain":
    (model / "weights").write_text(str(best["params"]["x"][0]))
else:
    assert float((model / "weights").read_text()) == best["value"]
    if region == "b":
        if not Path("cured").exists():
            sys.exit("region b is worse than before")
        while not Path("go").exists():
            time.sleep(0.1)
    print("better than before")
"""


@pytest.fixture(scope="module", params=[True, False], ids=["shared files", "no shared files"])
def pool(request: pytest.FixtureRequest) -> Iterator[CondorPool]:
    with CondorPool(hosts=3, shares_files=request.param) as made:
        yield made


class Recommender:
    """An experiment with two regions, whose best models are published."""

    def __init__(self, pool: CondorPool) -> None:
        self.pool, self.directory = pool, pool.home / "recommender"
        self.work, self.models = pool.home / "dag", pool.home / "models"
        (self.directory / "runs").mkdir(parents=True)
        texts = {"config.pb": _CONFIG, "quick.py": _QUICK, "step.py": _STEP}
        for name, text in texts.items():
            (self.directory / name).write_text(text)
        for path in (self.directory, *self.directory.iterdir()):
            os.chown(path, UID, UID)

    def submit(self) -> str:
        argv = [sys.executable, "-m", "condor_jobs", "dag", str(self.directory)]
        argv += [f"--{step}={sys.executable} step.py {step}" for step in ("retrain", "evaluate")]
        argv += [f"--publish={self.models}", f"--work={self.work}", "--"]
        argv += ["--method=RandomChooser", "--max-finished-jobs=2", "--polling-time=1"]
        return self.pool.checked(*argv, uid=UID)

    def allow(self, name: str) -> None:
        (self.directory / name).touch()

    def runs(self, step: str) -> int:
        return len(list((self.directory / "runs").glob(f"{step}.*")))

    def wait(self) -> None:
        until(lambda: not self.pool.jobs(), 240, 0.5, progress=self.progress)

    def progress(self) -> object:
        return [(job["id"], job["JobStatus"]) for job in self.pool.jobs()]

    def logs(self) -> str:
        found = [path for path in self.work.rglob("*") if path.suffix in (".out", ".err")]
        return "\n".join(f"{path}:\n{path.read_text()[-3000:]}" for path in found)


def test_a_dag_continues_where_it_failed(pool: CondorPool) -> None:
    made = Recommender(pool)
    assert made.submit().startswith("Submitted")
    again = pool.run(
        sys.executable, "-m", "condor_jobs", "dag", str(made.directory), "--retrain=true",
        f"--publish={made.models}", f"--work={made.work}", uid=UID,
    )  # fmt: skip
    assert again.returncode == 1
    assert "is running as job" in again.stderr
    made.wait()
    first = made.models / "recommender.a"
    assert (first / "weights").exists(), made.logs()
    assert (first / "evaluation.txt").read_text() == "better than before\n"
    assert json.loads((first / "best.json").read_text())["state"] == "complete"
    assert not (made.models / "recommender.b").exists()
    made.allow("cured")
    if not pool.shares_files:
        made.allow("go")  # it is sent with the job
    said = made.submit()
    assert said.startswith("Continued"), said
    if pool.shares_files:
        until(lambda: made.runs("evaluate.b") == 2, 60, 0.2)
        pool.kill("condor_dagman")
    made.allow("go")
    made.wait()
    assert (made.models / "recommender.b" / "weights").exists(), made.logs()
    if pool.shares_files:  # otherwise the runs left no files here
        counts = {step: made.runs(step) for step in ("retrain", "evaluate.a", "evaluate.b")}
        assert counts == {"retrain": 2, "evaluate.a": 1, "evaluate.b": 2}
        return
    version = first.resolve()
    assert made.submit().startswith("Submitted")  # all again
    made.wait()
    assert first.resolve() != version
    assert version.exists()
