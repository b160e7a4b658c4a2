"""The pages name every plugin with its arguments, every hook and method; its example runs."""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from starcluster.clustersetup import ClusterSetup
from starcluster.config import Plugin
from starcluster.setup.hooks import load
from starcluster.testing import FakeNode, FakeShell
from starcluster.testing.programs import BUILT_IN

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGE = "".join(
    (DOCS / "reference" / name).read_text(encoding="utf-8")
    for name in ("plugins.rst", "plugin_api.rst")
)
HOW_TO = (DOCS / "how_to" / "write_plugin.rst").read_text(encoding="utf-8")
HOOKS = ("run", "on_add_node", "on_remove_node", "on_restart", "on_shutdown")
NODE = """alias id instance_type image_id ip_address private_ip_address dns_name placement state
tags is_master is_spot num_processors memory apt_install apt_command package_install add_user
getpwnam get_user_map generate_key_for_user enable_passwordless_ssh add_to_known_hosts
export_fs_to_nodes
mount_nfs_shares add_to_etc_hosts set_hostname is_up is_ssh_up start stop reboot terminate
add_tag add_user_to_group cluster_groups parent_cluster ec2 region key_location"""
SSH = """execute execute_async get_status get_last_status remote_file put get isdir isfile
path_exists ls mkdir makedirs chmod chown unlink get_remote_file_lines remove_lines_from_file which
switch_user has_required"""


def plugins() -> dict[str, type[ClusterSetup]]:
    found = {}
    for package in ("starcluster/plugins", "starcluster_plugins"):
        for path in sorted((ROOT / package).glob("[a-z]*.py")):
            name = f"{package.replace('/', '.')}.{path.stem}"
            for key, value in vars(importlib.import_module(name)).items():
                own = inspect.isclass(value) and value.__module__ == name
                if own and issubclass(value, ClusterSetup):
                    found[f"{name}.{key}"] = value
    return found


@pytest.mark.parametrize("name", plugins())
def test_every_plugin_is_there_with_its_arguments(name: str) -> None:
    assert name in PAGE
    for argument in inspect.signature(plugins()[name]).parameters:
        assert f"``{argument}``" in PAGE


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_is_there_with_its_arguments(hook: str) -> None:
    names = list(inspect.signature(getattr(ClusterSetup, hook)).parameters)[1:]
    assert f"* - ``{hook}``\n     - {', '.join(names)}\n" in PAGE


def test_the_whole_api_of_the_original_exists_and_is_described() -> None:
    from starcluster.node import Node, Shell

    node = FakeNode()
    for name in NODE.split():
        assert hasattr(type(node), name) or name in vars(node), name
        assert re.search(rf"``{name}\b", PAGE), name
    assert isinstance(inspect.getattr_static(Node, "ssh"), property)
    for name in SSH.split():
        assert callable(getattr(Shell, name)), name
        assert re.search(rf"``{name}\b", PAGE), name
    for option in list(inspect.signature(Shell.execute).parameters)[2:]:
        assert re.search(rf"``{option}\b", PAGE), option


def test_the_tests_of_the_example_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples" / "extending")
    block = re.search(r":: python\n\n((?:   .*\n|\n)+)", HOW_TO)
    assert block is not None
    names: dict[str, Any] = {}
    exec(textwrap.dedent(block[1]), names)  # noqa: S102 - of our own page
    found = [value for name, value in names.items() if name.startswith("test_")]
    assert len(found) == 2
    for test in found:
        test()


def test_the_fake_node_is_described() -> None:
    section = PAGE.split("\nFakeNode\n---")[1]
    for name in ("answer", "programs", "add_file", "reachable", "ran"):
        assert hasattr(FakeShell(), name)
        assert re.search(rf"``{name}\b", section)
    for name in BUILT_IN:
        assert name in section or name in ("hostname", "true")


def test_the_class_of_the_example_loads_from_the_config(tmp_path: Path) -> None:
    example = ROOT / "examples" / "extending" / "scratch_plugin.py"
    (tmp_path / example.name).write_text(example.read_text())
    arguments = {"path": "/data/scratch"}
    section = Plugin(name="scratch", setup_class="scratch_plugin.Scratch", arguments=arguments)
    node = FakeNode("master")
    load(section, tmp_path).run([node], node, "sgeadmin", "bash", {})
    assert node.ssh.isdir("/data/scratch")
