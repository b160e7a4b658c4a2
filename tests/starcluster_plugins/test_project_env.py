"""project_env: one environment on the shared home, with the extras for the drivers."""

from __future__ import annotations

import io
import tarfile

import pytest

from starcluster.errors import ConfigError, NodeError
from starcluster.node import Node
from starcluster.testing import FakeNode, FakeShell
from starcluster_plugins import project_env
from starcluster_plugins.project_env import ProjectEnv

PROFILE = "/etc/profile.d/starmint-env.sh"


class Machine:
    """A fake node with a user, a Python and an optional driver; records installations."""

    def __init__(self, alias: str, *, driver: str = "", python: str = "True") -> None:
        self.installed: list[str] = []
        self.uploaded: list[str] = []
        self._driver, self._python = driver, python
        programs = {
            "getent": lambda *_: (0, "ann:x:1001:1001::/home/ann:/bin/bash\n"),
            "nvidia-smi": self._smi,
            "python3": lambda *_: (0, f"{python}\n"),
            "su": self._su,
            "sh": self._sh,
        }
        self.shell = FakeShell(name=alias, programs=programs)
        self.shell.makedirs("/etc/profile.d")
        self.node: Node = FakeNode(shell=self.shell)

    def _smi(self, *_: object) -> tuple[int, str]:
        row = f"0, GPU-1, Tesla T4, {self._driver}, Enabled, 5001, 1590\n"
        return (0, row) if self._driver else (9, "no driver")

    def _su(self, shell: FakeShell, argv: list[str], _: str) -> tuple[int, str]:
        if "pip install" in argv[-1]:
            self.installed.append(argv[-1].split()[-1].strip("'"))
        return 0, ""

    def _sh(self, shell: FakeShell, argv: list[str], stdin: str) -> tuple[int, str]:
        self.uploaded.append(argv[4])
        return 0, ""


def run(plugin: ProjectEnv, *machines: Machine) -> None:
    nodes = [machine.node for machine in machines]
    plugin.run(nodes, nodes[0], "ann", "bash", {})


@pytest.mark.parametrize(
    ("drivers", "wanted"),
    [
        (("", ""), "starmint==1.0"),
        (("", "580.159.03"), "starmint==1.0[gpu]"),
        (("", "570.172.08"), "starmint==1.0[gpu-cu12]"),
        (("580.159.03", "535.183.01"), "starmint==1.0[gpu-cu12]"),
    ],
)
def test_the_extra_suits_the_oldest_driver(drivers: tuple[str, str], wanted: str) -> None:
    machines = [Machine(f"node00{n}", driver=driver) for n, driver in enumerate(drivers)]
    run(ProjectEnv(source="starmint==1.0"), *machines)
    assert machines[0].installed == [wanted]
    assert machines[1].installed == []  # the environment is on the shared home
    for machine in machines:
        assert "/home/ann/starmint-env/bin" in machine.shell.read_file(PROFILE)


def test_the_source_tree_goes_up_without_what_is_not_source() -> None:
    master = Machine("master")
    run(ProjectEnv(extras="report, data"), master)
    assert master.uploaded == ["/home/ann/starmint-source"]
    assert master.installed == ["/home/ann/starmint-source[report,data]"]
    packed = project_env._archive(project_env._tree())
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        names = tar.getnames()
    assert {"pyproject.toml", "spearmint/cli", "sge_jobs/node/gpu-starter"} <= set(names)
    assert not [name for name in names if "__pycache__" in name or name.startswith("tests")]


def test_a_new_node_finds_it_and_an_old_python_is_named() -> None:
    master, new = Machine("master"), Machine("node001")
    nodes = [master.node, new.node]
    ProjectEnv(source="x").on_add_node(new.node, nodes, master.node, "ann", "bash", {})
    assert "starmint-env" in new.shell.read_file(PROFILE)
    with pytest.raises(NodeError, match=r"python3 .*3\.11"):
        run(ProjectEnv(source="x"), Machine("master", python="False"))


def test_outside_of_a_source_tree_it_must_be_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setattr(project_env, "_tree", lambda: tmp_path)
    with pytest.raises(ConfigError, match=r"(?s)project_env: .*source = starmint"):
        ProjectEnv()
