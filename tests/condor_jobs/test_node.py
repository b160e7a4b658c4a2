"""The nodes that run on the manager: the search, whichever region fails, and signals."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from condor_jobs.chain import Chain
from tests.waiting import until

CONFIG = """language: PYTHON
name: "net"
region: "good"
region: "bad"
variable { name: "x" type: FLOAT min: 0 max: 1 }
"""
CODE = """
import spearmint, time
from pathlib import Path

def main(job_id, params):
    while Path(__file__).with_name("wait").exists():
        time.sleep(0.1)
    if spearmint.region() == "bad" and not Path(__file__).with_name("cured").exists():
        raise ValueError("no data")
    return 1.0
"""
OPTIONS = ("--driver=local", "--method=RandomChooser", "--max-finished-jobs=1", "--max-broken=1")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / "config.pb").write_text(CONFIG)
    (tmp_path / "search" / "net.py").write_text(CODE)
    return tmp_path / "search"


def chain(directory: Path, region: str) -> Path:
    folder = directory.parent / region
    folder.mkdir()
    target = str(folder / "model")
    Chain(
        name=region, directory=str(directory), region=region, options=OPTIONS, target=target
    ).write(folder)
    return folder


def node(*arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "condor_jobs.node", *map(str, arguments)])


@pytest.mark.slow
def test_a_region_counts_alone(directory: Path) -> None:
    good, bad = (chain(directory, region) for region in ("good", "bad"))
    assert node("search", good).wait() == 0
    best = json.loads((good / "dag-best.json").read_text())
    assert best["value"] == 1.0
    assert node("search", bad).wait() == 1
    assert not (bad / "dag-best.json").exists()
    assert "Error:" in (bad / "search.out").read_text()
    (directory / "cured").touch()
    assert node("search", bad).wait() == 0
    assert json.loads((bad / "dag-best.json").read_text())["value"] == 1.0


@pytest.mark.slow
def test_sigterm_stops_the_search_and_the_next_run_continues(directory: Path) -> None:
    (directory / "cured").touch()
    (directory / "wait").touch()
    log = directory / "search.log"
    with node("run", directory, *OPTIONS) as first:
        until(lambda: list(directory.glob("regions/*/jobs/*/runner.json")), 60)
        with node("run", directory, *OPTIONS) as second:  # waits for the first one
            first.send_signal(signal.SIGTERM)
            (directory / "wait").unlink()  # it waits for its local trials
            assert first.wait() == 128 + signal.SIGTERM
            assert second.wait() == 0
    assert "2 complete trials" in log.read_text()


def test_a_node_without_a_chain_fails(tmp_path: Path) -> None:
    assert node("publish", tmp_path).wait() == 1
    assert "chain.json" in (tmp_path / "publish.out").read_text()
