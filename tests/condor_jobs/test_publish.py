"""Published models: whole, the old one or the new one, also after a kill at any instant."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from condor_jobs.chain import Chain
from condor_jobs.errors import NodeFailed
from condor_jobs.publish import publish


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    target = str(tmp_path / "models" / "shop.us")
    made = Chain(name="shop.us", directory="/d", region="us", options=(), target=target)
    made.write(tmp_path)
    (tmp_path / "dag-model" / "sub").mkdir(parents=True)
    (tmp_path / "dag-best.json").write_text("{}")
    train(tmp_path, 1)
    return made


def train(folder: Path, number: int) -> None:
    for path in (folder / "dag-model" / "weights", folder / "dag-model" / "sub" / "bias"):
        path.write_text(str(number))
        os.utime(path, (number, number))
    os.utime(folder / "dag-best.json", (number, number))


def content(chain: Chain) -> set[str]:
    target = Path(chain.target)
    return {path.read_text() for path in (target / "weights", target / "sub" / "bias")}


def test_the_link_moves_and_the_version_before_stays(chain: Chain, tmp_path: Path) -> None:
    (tmp_path / "evaluate.out").write_text("better\n")
    versions = []
    for number in (1, 2, 3):
        train(tmp_path, number)
        versions.append(publish(chain, tmp_path))
        assert publish(chain, tmp_path) == versions[-1]
        assert content(chain) == {str(number)}
    assert [path.exists() for path in versions] == [False, True, True]
    assert (Path(chain.target) / "evaluation.txt").read_text() == "better\n"
    assert (Path(chain.target) / "best.json").read_text() == "{}"


_KILLED = """
import os, sys
from pathlib import Path
from condor_jobs.chain import Chain
from condor_jobs.publish import publish

left, folder = int(sys.argv[1]), Path(sys.argv[2])
def count(event, _):
    global left
    if event in ("open", "os.rename", "os.symlink", "os.mkdir", "shutil.rmtree", "os.remove"):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), 9)
chain = Chain.read(folder)
sys.addaudithook(count)
publish(chain, folder)
"""


def test_a_kill_leaves_the_old_or_the_new_model(chain: Chain, tmp_path: Path) -> None:
    publish(chain, tmp_path)
    seen = []
    for steps in range(100):
        (before,) = content(chain)
        new = str(steps + 2)
        train(tmp_path, steps + 2)
        argv = [sys.executable, "-c", _KILLED, str(steps), str(tmp_path)]
        status = subprocess.run(argv, check=False).returncode
        assert status in (0, -9)
        assert content(chain) in ({before}, {new})
        seen.append(status)
        if status == 0:
            break
    assert seen[0] == -9
    assert seen[-1] == 0
    assert content(chain) == {new}
    assert not list(tmp_path.glob("models/.*.part"))


def test_what_cannot_be_published(chain: Chain, tmp_path: Path) -> None:
    Path(chain.target).mkdir(parents=True)
    with pytest.raises(NodeFailed, match="not a link"):
        publish(chain, tmp_path)
    Path(chain.target).rmdir()
    for path in (tmp_path / "dag-model").rglob("*"):
        if path.is_file():
            path.unlink()
    (tmp_path / "dag-model" / "sub").rmdir()
    with pytest.raises(NodeFailed, match="CONDOR_JOBS_MODEL"):
        publish(chain, tmp_path)
    assert not Path(chain.target).exists()
