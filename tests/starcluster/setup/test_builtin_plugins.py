"""Requests of built-in plugins to a node that a host of the test bed cannot show."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from starcluster.clustersetup import ClusterSetup
from starcluster.errors import ConfigError
from starcluster.plugins.pkginstaller import PackageInstaller
from starcluster.plugins.pypkginstaller import PyPkgInstaller
from starcluster.plugins.sge import SGEPlugin
from starcluster.plugins.users import CreateUsers
from starcluster.testing import ANY, FakeNode, FakeShell


def test_packages_by_what_the_node_has() -> None:
    nodes = [FakeNode("master"), FakeNode("node001")]
    debian, amazon = (node.ssh for node in nodes)
    debian.answer("apt-get")
    amazon.answer(ANY)
    PackageInstaller(packages="htop, git-lfs=3.*").run(nodes, nodes[0], "u", "bash", {})
    assert "apt-get" in debian.ran[-1]
    assert "git-lfs=3.*" in debian.ran[-1]
    assert "install htop" in amazon.ran[-1]
    assert "dnf" in amazon.ran[-1]


def test_python_packages_and_pip_where_it_is_missing() -> None:
    bare, ready = FakeShell(), FakeShell()
    bare.answer("python3", (1, "No module named pip"), "")
    ready.answer("python3")
    for shell in (bare, ready):
        shell.answer("apt-get")
        node = FakeNode(shell=shell)
        PyPkgInstaller(packages="numpy scipy>=1").on_add_node(node, [node], node, "u", "bash", {})
    assert any("install python3-pip" in line for line in bare.ran)
    assert not any("python3-pip" in line for line in ready.ran)
    assert "pip install --quiet numpy" in ready.ran[-1]


@pytest.mark.parametrize(
    ("make", "facts"),
    [
        (lambda: PackageInstaller(packages=" , "), ("pkginstaller", "packages = ")),
        (lambda: PyPkgInstaller(), ("pypkginstaller", "packages = ")),
        (lambda: CreateUsers(), ("users:", "num_users = ", "usernames = ")),
        (lambda: CreateUsers(num_users="3", usernames="ann"), ("users:", "num_users", "3", "1")),
        (lambda: SGEPlugin(slots_per_host="many"), ("sge:", "slots_per_host", "many")),
    ],
)
def test_arguments_that_make_no_sense(
    make: Callable[[], ClusterSetup], facts: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigError) as caught:
        make()
    assert all(fact in str(caught.value) for fact in facts)
