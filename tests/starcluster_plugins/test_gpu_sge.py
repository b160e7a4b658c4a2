"""gpu_sge: nodes that pass are registered, others are named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sge_jobs.node.selftest import selftest
from starcluster.errors import ConfigError, SetupError
from starcluster.testing import FakeNode, FakeShell
from starcluster_plugins.gpu_sge import GpuSge

ADVICE = "qsub -l gpu=1"


def test_the_self_test_prints_the_advice_that_is_left_out() -> None:
    source = Path(selftest.__file__).read_text()
    assert ADVICE in source


def node(alias: str, gpus: int, *, sound: bool = True, source: str = "nvml") -> FakeNode:
    def python(shell: FakeShell, argv: list[str], _: str) -> tuple[int, str]:
        if "-c" in argv:
            return 0, f"{source} {gpus}\n"
        return (
            (0, "sound")
            if sound
            else (1, f"GPU 0: memory: 3 words of 4096 are wrong\nTry {ADVICE}")
        )

    made = FakeNode(alias, FakeShell(programs={"env": python}))
    made.ssh.answer("sh")
    made.ssh.answer("sge-jobs")
    return made


def ran(node: FakeNode, part: str) -> list[str]:
    return [line for line in node.ssh.ran if part in line]


def test_sound_nodes_are_registered_and_the_bad_one_is_named() -> None:
    nodes = [node("master", 0), node("node001", 4), node("node002", 4, sound=False)]
    with pytest.raises(SetupError) as caught:
        GpuSge().run(nodes, nodes[0], "sgeadmin", "bash", {})
    assert list(caught.value.failed) == ["node002"]
    assert "3 words of 4096 are wrong" in caught.value.failed["node002"]
    assert ADVICE not in caught.value.failed["node002"]
    (setup,) = ran(nodes[0], "sge-jobs setup")
    assert "--gpus=master=0 --gpus=node001=4" in setup
    assert "node002" not in setup
    assert ran(nodes[0], "selftest") == []  # the master has no GPU
    (test,) = ran(nodes[1], "selftest")
    assert "--seconds 20" in test


def test_a_node_with_fewer_gpus_than_it_should_have_is_bad() -> None:
    nodes = [node("master", 8), node("node001", 7)]
    with pytest.raises(SetupError) as caught:
        GpuSge(selftest_s="0", gpus="8").run(nodes, nodes[0], "sgeadmin", "bash", {})
    (reason,) = caught.value.failed.values()
    assert re.findall(r"\d+", reason) == ["7", "8"]
    assert list(caught.value.failed) == ["node001"]
    assert ran(nodes[0], "selftest") == []


def test_declared_gpus_are_registered_without_a_test() -> None:
    master, new = node("master", 2), node("node001", 2, source="declared", sound=False)
    GpuSge().on_add_node(new, [master, new], master, "sgeadmin", "bash", {})
    assert ran(new, "selftest") == []
    assert "--gpus=node001=2" in ran(master, "sge-jobs setup")[0]


def test_arguments_are_numbers() -> None:
    with pytest.raises(ConfigError, match=r"selftest_s .*'long'"):
        GpuSge(selftest_s="long")
