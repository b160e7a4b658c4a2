"""What the built-in plugins ask of a node, where a host of the test bed cannot show it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from starcluster.clustersetup import ClusterSetup
from starcluster.errors import ConfigError
from starcluster.plugins.pkginstaller import PackageInstaller
from starcluster.plugins.pypkginstaller import PyPkgInstaller
from starcluster.plugins.sge import SGEPlugin
from starcluster.plugins.users import CreateUsers
from tests.starcluster.fake_shell import FakeShell, fake_node


def shell(*programs: str) -> FakeShell:
    return FakeShell(programs={name: lambda *_: (0, "") for name in ("bash", *programs)})


def test_packages_by_what_the_node_has() -> None:
    debian, amazon = shell("apt-get"), shell("dnf")
    nodes = [fake_node(debian, alias="master"), fake_node(amazon, alias="node001")]
    PackageInstaller(packages="htop, git-lfs=3.*").run(nodes, nodes[0], "u", "bash", {})
    assert "apt-get" in debian.ran[-1]
    assert "git-lfs=3.*" in debian.ran[-1]
    assert "install htop" in amazon.ran[-1]
    assert "dnf" in amazon.ran[-1]


def test_python_packages_and_pip_where_it_is_missing() -> None:
    bare, ready = shell("apt-get"), shell("apt-get", "python3")
    for one in (bare, ready):
        node = fake_node(one)
        PyPkgInstaller(packages="numpy scipy>=1").on_add_node(node, [node], node, "u", "bash", {})
    assert any("install python3-pip" in line for line in bare.ran)
    assert not any("python3-pip" in line for line in ready.ran)
    assert "pip install --quiet numpy" in ready.ran[-1]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PackageInstaller(packages=" , "), "no packages"),
        (lambda: PyPkgInstaller(), "no packages"),
        (lambda: CreateUsers(), "no users"),
        (lambda: CreateUsers(num_users="3", usernames="ann"), "num_users is 3"),
        (lambda: SGEPlugin(slots_per_host="many"), "slots_per_host is many"),
    ],
)
def test_arguments_that_make_no_sense(make: Callable[[], ClusterSetup], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make()
