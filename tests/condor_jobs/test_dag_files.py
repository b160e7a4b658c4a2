"""The files of a DAG, and what the command does before DAGMan; tests/on_hosts has a real pool."""

from __future__ import annotations

import os
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from tests import commands

CONFIG = 'language: PYTHON\nname: "net"\nvariable { name: "x" type: FLOAT min: 0 max: 1 }\n'
SUBMITTED = "1 job(s) submitted to cluster 17."


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An experiment with two regions and one without, and stand-ins for HTCondor's commands."""
    for name, regions in {"shop": 'region: "us"\nregion: "de"\n', "a b": ""}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.pb").write_text(CONFIG + regions)
        (tmp_path / name / "net.py").touch()
        (tmp_path / name / "spearmint.db").touch()
        (tmp_path / name / "jobs").mkdir()
    program(tmp_path, "condor_q", "")
    program(tmp_path, "condor_submit_dag", SUBMITTED)
    program(tmp_path, "condor_submit", "18.0 - 18.0")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def program(site: Path, name: str, out: str, status: int = 0) -> None:
    text = f'#!/bin/sh\necho "$@" >>{site}/{name}.called\ncat <<E\n{out}\nE\nexit {status}\n'
    (site / name).write_text(text)
    (site / name).chmod(0o755)


def called(site: Path) -> list[str]:
    return (site / "condor_submit_dag.called").read_text().splitlines()


def dag(site: Path, *options: str, directories: tuple[str, ...] = ("shop",)) -> commands.Done:
    where = [site / name for name in directories]
    steps = ["--retrain=python r.py 'a b'", f"--publish={site / 'models'}", f"--work={site / 'w'}"]
    return commands.run("condor_jobs", "dag", *where, *steps, *options)


def test_the_chains_of_regions_and_directories(site: Path) -> None:
    done = dag(site, "--evaluate=./e", directories=("shop", "a b"))
    assert done.returncode == 0, done.stderr
    assert "job 17" in done.stdout
    lines = (site / "w" / "chains.dag").read_text().splitlines()
    for name in ("shop.us", "shop.de", "a_b"):
        nodes = [f"{step}-{name}" for step in ("search", "retrain", "evaluate", "publish")]
        assert {f"JOB {node} {name}/{node.partition('-')[0]}.sub" for node in nodes} <= {*lines}
        chained = pairwise(nodes)
        assert {f"PARENT {a} CHILD {b}" for a, b in chained} <= {*lines}
    assert "CATEGORY search-shop.us directory1" in lines
    assert "CATEGORY search-shop.de directory1" in lines
    assert lines[-2:] == ["MAXJOBS directory1 1", "MAXJOBS directory2 1"]


def test_the_jobs(site: Path) -> None:
    dag(site, "-l", "request_memory=16G", "--gpus=2", "--", "--max-finished-jobs=3")
    folder = site / "w" / "shop.us"
    description = (folder / "retrain.sub").read_text()
    assert "request_gpus = 2\n" in description
    assert "request_memory = 16G\n" in description
    sent = description.partition("transfer_input_files = ")[2].partition("\n")[0].split(", ")
    own = [f"{site}/shop/{name}" for name in ("config.pb", "net.py")]
    assert sent == ["dag-best.json", "dag-model", *own]
    assert "universe = local\n" in (folder / "search.sub").read_text()
    assert '"--driver=HTCONDOR",\n  "--max-finished-jobs=3"' in (folder / "chain.json").read_text()


@pytest.mark.parametrize("shares_files", [True, False])
def test_the_script_of_a_job(site: Path, shares_files: bool) -> None:
    (site / "shop" / "r.py").write_text(
        "import os, sys\nprint(os.getcwd(), sys.argv[1], os.environ['SPEARMINT_REGION'])\n"
        "open(os.path.join(os.environ['CONDOR_JOBS_MODEL'], 'weights'), 'w')\n"
    )
    dag(site)
    here = site / "w" / "shop.us" if shares_files else site / "scratch"
    here.mkdir(exist_ok=True)
    if not shares_files:
        (here / "r.py").write_bytes((site / "shop" / "r.py").read_bytes())
    done = subprocess.run(
        [site / "w" / "shop.us" / "retrain.sh"],
        cwd=here,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == f"{site / 'shop' if shares_files else here} a b us\n"
    assert (here / "dag-model" / "weights").exists()


def test_a_dry_run_writes_nothing(site: Path) -> None:
    done = dag(site, "--dry-run")
    assert "PARENT retrain-shop.us CHILD publish-shop.us" in done.stdout
    assert not (site / "w").exists()
    assert not (site / "condor_submit_dag.called").exists()


def test_a_running_dag_is_left_alone(site: Path) -> None:
    program(site, "condor_q", "12")
    done = dag(site)
    assert done.returncode == 1
    assert "running as job 12" in done.stderr
    assert not (site / "w").exists()


def test_a_failed_dag_continues(site: Path) -> None:
    dag(site)
    (site / "w" / "chains.dag.rescue001").touch()
    assert dag(site, "-l", "request_memory=32G").stdout.startswith("Continued")
    assert "-force" in called(site)[0]
    assert "-force" not in called(site)[1]
    other = dag(site, directories=("a b",))
    assert other.returncode == 2
    assert "--restart" in other.stderr
    assert dag(site, "--restart", directories=("a b",)).stdout.startswith("Submitted")
    assert "-force" in called(site)[2]


def test_a_complete_dag_starts_again(site: Path) -> None:
    dag(site)
    (site / "w" / "chains.dag.rescue001").touch()
    (site / "w" / "chains.dag.metrics").write_text('{"exitcode": 0}')
    assert dag(site).stdout.startswith("Submitted")


@pytest.mark.parametrize(
    ("options", "directories", "message"),
    [
        (("--evaluate='",), ("shop",), "--evaluate"),
        (("--gpus=-1",), ("shop",), "--gpus"),
        (("-l", "nonsense"), ("shop",), "nonsense"),
        (("-l", "queue=2"), ("shop",), "queue"),
        ((), ("missing",), "missing"),
        ((), ("shop", "shop"), "shop.us"),
    ],
)
def test_wrong_input(
    site: Path, options: tuple[str, ...], directories: tuple[str, ...], message: str
) -> None:
    done = dag(site, *options, directories=directories)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (site / "w").exists()


@pytest.mark.parametrize("name", ["condor_submit_dag", "condor_q"])
def test_htcondor_refuses(site: Path, name: str) -> None:
    program(site, name, "ERROR: no schedd", 1)
    done = dag(site)
    assert done.returncode == 1
    assert "no schedd" in done.stderr


def test_a_search_is_a_job(site: Path) -> None:
    done = commands.run("condor_jobs", "search", site / "shop", "--", "--target=0")
    assert "job 18.0" in done.stdout
    shown = commands.run("condor_jobs", "search", site / "shop" / "config.pb", "--dry-run").stdout
    assert f"'run' '{site / 'shop'}' '--driver=HTCONDOR'" in shown
    assert "universe = local" in shown
