"""Plugins are found by dotted name, checked and called; failures are reported."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from starcluster.clustersetup import ClusterSetup
from starcluster.config.sections import Plugin
from starcluster.errors import ConfigError, NodeError, PluginError, SetupError
from starcluster.setup.hooks import LoadedPlugin, call, load, load_plugins

BUILT_IN = {
    "starcluster.plugins.pkginstaller.PackageInstaller": {"packages": "htop, git"},
    "starcluster.plugins.pypkginstaller.PyPkgInstaller": {"packages": "numpy"},
    "starcluster.plugins.users.CreateUsers": {"num_users": "2"},
    "starcluster.plugins.tmux.TmuxControlCenter": {},
    "starcluster.plugins.sge.SGEPlugin": {"slots_per_host": "4"},
    "starcluster.plugins.ipcluster.IPCluster": {"enable_notebook": "True", "packer": "pickle"},
    "starcluster.plugins.condor.CondorPlugin": {"master_is_exec_host": "False"},
    "starcluster.plugins.mpich2.MPICH2Setup": {},
    "starcluster.plugins.xvfb.XvfbSetup": {"display": "2"},
    "starcluster_plugins.nvidia_tune.NvidiaTune": {"clocks": "5001,1590"},
    "starcluster_plugins.gpu_sge.GpuSge": {"selftest_s": "0"},
    "starcluster_plugins.project_env.ProjectEnv": {"source": "starmint"},
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("my_"):
            del sys.modules[name]


def plugin(setup_class: str, **arguments: str) -> Plugin:
    return Plugin(name="mine", setup_class=setup_class, arguments=arguments)


@pytest.mark.parametrize("setup_class", BUILT_IN)
def test_every_plugin_that_comes_along_loads_with_arguments_of_a_config_file(
    setup_class: str, folder: Path
) -> None:
    made = load(plugin(setup_class, **BUILT_IN[setup_class]), folder)
    assert isinstance(made, ClusterSetup)


def test_plugins_keep_their_order_and_get_their_arguments(folder: Path) -> None:
    source = "from starcluster.clustersetup import ClusterSetup\n"
    source += "class Mine(ClusterSetup):\n    def __init__(self, word):\n        self.word = word\n"
    (folder / "my_plugin.py").write_text(source)
    made = load_plugins([plugin("my_plugin.Mine", word=word) for word in ("b", "a")], folder)
    assert [plugin.setup.word for plugin in made] == ["b", "a"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("setup_class", "source", "fact"),
    [
        ("Alone", "", "module.Class"),
        ("my_missing.Mine", "", "my_missing.py"),
        ("my_one.Mine", "import my_other_package", "pip install my_other_package"),
        ("my_one.Mine", "print 'x'", "starcluster convertplugin /"),
        ("my_one.Mine", "1 / 0", "ZeroDivisionError"),
        ("my_one.Mine", "", "class Mine"),
        ("my_one.Mine", "Mine = 3", "starcluster.clustersetup.ClusterSetup"),
    ],
)
def test_what_cannot_be_loaded_is_said(
    folder: Path, setup_class: str, source: str, fact: str
) -> None:
    (folder / "my_one.py").write_text(source)
    with pytest.raises(PluginError) as caught:
        load(plugin(setup_class), folder)
    assert fact in str(caught.value)
    assert "plugin mine" in caught.value.what


def test_wrong_arguments_are_all_named_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        load(plugin("starcluster_plugins.nvidia_tune.NvidiaTune", clock="1,2", speed="3"))
    clock, speed = caught.value.problems
    assert all(fact in clock for fact in ("'clock'", "NvidiaTune", "'clocks'"))
    assert all(fact in speed for fact in ("'speed'", "NvidiaTune", "clocks, driver, measure"))


class Hooks(ClusterSetup):
    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.error, self.calls = error, list[tuple[Any, ...]]()

    def run(self, *arguments: Any) -> None:
        self.calls.append(arguments)
        if self.error:
            raise self.error


def test_a_hook_that_is_not_overridden_is_skipped() -> None:
    hooks = Hooks()
    loaded = LoadedPlugin(name="mine", setup=hooks)
    assert call(loaded, "run", 1, 2)
    assert not call(loaded, "on_shutdown", 1, 2)
    assert hooks.calls == [(1, 2)]
    assert not call(LoadedPlugin(name="mine", setup=Hooks(NotImplementedError())), "run")


def test_errors_name_the_plugin_and_where_they_can_the_nodes() -> None:
    bad_nodes = SetupError("1 of 2 nodes failed", failed={"node001": "no GPU"})
    with pytest.raises(SetupError) as nodes:
        call(LoadedPlugin(name="mine", setup=Hooks(bad_nodes)), "run")
    assert nodes.value.failed == {"node001": "mine: no GPU"}
    for error in (NodeError("bad"), ValueError("bad"), SetupError("bad")):
        with pytest.raises(PluginError, match=r"plugin mine: (ValueError: )?bad"):
            call(LoadedPlugin(name="mine", setup=Hooks(error)), "run")
