"""Plugins in Python 2 are refused with the command that converts them, and then run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from starcluster.config import Plugin
from starcluster.errors import InputError, MissingExtra, PluginError
from starcluster.setup import python2
from starcluster.setup.hooks import LoadedPlugin, call, load
from starcluster.testing import FakeNode
from tests.commands import starcluster

pytest.importorskip("fissix", reason="needs the extra python2")

OLD = '''\
# -*- coding: utf-8 -*-
from starcluster.clustersetup import ClusterSetup
from starcluster.logger import log
from starcluster import exception
import ConfigParser, StringIO


class Motd(ClusterSetup):
    """Caf\u00e9"""

    def __init__(self, text, mode="0644"):
        self.text = text
        self.mode = int(mode, 8)
        if mode == 0600:
            raise exception.PluginError, "secret"

    def run(self, nodes, master, user, user_shell, volumes):
        for number in xrange(len(nodes)):
            node = nodes[number]
            motd = node.ssh.remote_file("/etc/motd", "w")
            print >> motd, "%s from %s" % (self.text, node.alias)
            motd.close()
        for name, volume in volumes.iteritems():
            if not volume.has_key("mount_path"):
                print "no path", name
        try:
            master.ssh.execute("missing")
        except exception.RemoteCommandFailed, e:
            log.info(e.msg)
'''


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    file = tmp_path / "my_old_motd.py"
    file.write_text(OLD, encoding="utf-8")
    yield file
    sys.modules.pop("my_old_motd", None)


SECTION = Plugin(name="motd", setup_class="my_old_motd.Motd", arguments={"TEXT": "Hi"})


def test_a_plugin_is_refused_then_converted_and_runs(plugin: Path) -> None:
    with pytest.raises(PluginError) as caught:
        load(SECTION, plugin.parent)
    assert f"starcluster convertplugin {plugin}" in caught.value.fix
    no = starcluster("convertplugin", plugin, stdin="n\n")
    assert no.returncode == 1
    assert plugin.read_text(encoding="utf-8") == OLD
    yes = starcluster("convertplugin", plugin, stdin="y\n")
    assert yes.returncode == 0, yes.stderr
    assert "+        for number in range(len(nodes)):" in yes.stdout
    assert plugin.with_name("my_old_motd.py.python2").read_text(encoding="utf-8") == OLD
    node = FakeNode("master")
    made = LoadedPlugin(name="motd", setup=load(SECTION, plugin.parent))
    assert call(made, "run", [node], node, "u", "bash", {"data": {"mount_path": "/data"}})
    assert node.ssh.read_file("/etc/motd") == "Hi from master\n"
    again = starcluster("convertplugin", "--confirm", plugin)
    assert (again.returncode, "nothing to convert" in again.stdout) == (0, True)


def test_an_old_copy_is_never_written_over(plugin: Path) -> None:
    plugin.with_name("my_old_motd.py.python2").write_text("mine")
    assert starcluster("convertplugin", plugin.with_name("none.py")).returncode == 2
    done = starcluster("convertplugin", "-c", plugin)
    assert done.returncode == 2
    assert plugin.read_text(encoding="utf-8") == OLD


@pytest.mark.parametrize(
    ("source", "fact"),
    [
        ("import urllib2\n", "convertplugin"),
        ("import my_missing\n", "pip install my_missing"),
        ("unicode('x')\n", "convertplugin"),
        ("{}.has_key(1)\n", "convertplugin"),
        ("undefined\n", ""),
    ],
)
def test_what_is_python_2_and_what_is_not(plugin: Path, source: str, fact: str) -> None:
    plugin.write_text(source)
    with pytest.raises(PluginError) as caught:
        load(SECTION, plugin.parent)
    assert fact in caught.value.fix
    assert fact or "convertplugin" not in caught.value.fix
    assert not fact or str(plugin) in caught.value.fix or "pip" in fact


def test_a_hook_that_calls_python_2(plugin: Path) -> None:
    lines = "from starcluster.clustersetup import ClusterSetup\nclass Motd(ClusterSetup):\n"
    lines += "    def __init__(self, text): pass\n    def run(self, *given): return xrange(3)\n"
    plugin.write_text(lines)
    made = LoadedPlugin(name="motd", setup=load(SECTION, plugin.parent))
    with pytest.raises(PluginError) as caught:
        call(made, "run", [], None, "u", "bash", {})
    assert f"starcluster convertplugin {plugin}" in caught.value.fix
    assert "convertplugin" in starcluster("convertplugin", "--help").stdout
    assert starcluster("convertplugin", "-c", plugin).returncode == 0
    assert " range(3)" in plugin.read_text()


def test_what_is_no_python_at_all(plugin: Path, tmp_path: Path) -> None:
    plugin.write_text("class :\n  oops(\n")
    done = starcluster("convertplugin", "-c", plugin)
    assert done.returncode == 2
    assert str(plugin) in done.stderr
    assert starcluster("convertplugin", tmp_path / "none.py").returncode in (1, 2)


def test_without_the_extra(plugin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fissix.refactor", None)
    with pytest.raises(MissingExtra, match=r"install .fissix"):
        python2.conversion_of(plugin)


def test_a_syntax_that_stays_invalid_is_refused(plugin: Path) -> None:
    plugin.write_text("def f((a, b)=1, **)\n")
    with pytest.raises(InputError):
        python2.conversion_of(plugin)
