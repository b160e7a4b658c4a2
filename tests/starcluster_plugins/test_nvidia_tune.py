"""nvidia_tune on fake nodes whose driver keeps its state."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field

import pytest

from starcluster.errors import ConfigError, SetupError
from starcluster.node import Node
from starcluster.testing import FakeNode, FakeShell
from starcluster_plugins import nvidia_tune
from starcluster_plugins.nvidia_facts import MODPROBE_FILE
from starcluster_plugins.nvidia_tune import NvidiaTune


@dataclass
class Driver:
    """State of a fake driver: its module parameters, and the settings of nvidia-smi."""

    version: str = "580.159.03"
    has_check: bool = False
    busy: bool = False
    there: bool = True
    persists: bool = True
    loaded: int = 1
    persistent: bool = False
    clocks: str = "5001,585"
    supported: str = "5001,1590"
    auto_boost: bool = True
    reloads: int = 0
    early: int = 0
    fabric: str = ""
    installed: list[str] = field(default_factory=list)

    def shell(self, name: str = "node001") -> FakeShell:
        shell = FakeShell(name=name)
        shell.programs |= {
            "nvidia-smi": self.smi,
            "modinfo": self.modinfo,
            "sh": self.sh,
            "update-initramfs": self.initramfs,
            "nv-fabricmanager": lambda *_: (0, self.fabric) if self.fabric else (127, ""),
        }
        shell.makedirs("/etc/modprobe.d")
        self.load(shell)
        return shell

    def load(self, shell: FakeShell) -> None:
        line = f"CheckPCIConfigSpace: {self.loaded}\n" if self.has_check else ""
        shell.add_file("/proc/driver/nvidia/params", f"EnableMSI: 1\n{line}")

    def modinfo(self, shell: FakeShell, argv: list[str], _: str) -> tuple[int, str]:
        if argv[-1] != "nvidia":
            return 1, "not found"
        return 0, "NVreg_EnableMSI:int\n" + "NVreg_CheckPCIConfigSpace:int\n" * self.has_check

    def initramfs(self, *_: object) -> tuple[int, str]:
        self.early += 1
        return 0, ""

    def sh(self, shell: FakeShell, argv: list[str], stdin: str) -> tuple[int, str]:
        if "apt-cache" in stdin:
            self.there = True
            self.installed.append(argv[2])
            return 0, ""
        if "modprobe -r" not in stdin:
            return 0, "node001: 4711 python"
        if self.busy:
            return 1, "modprobe: FATAL: Module nvidia is in use."
        self.reloads += 1
        if shell.isfile(MODPROBE_FILE):
            match = re.search(
                r"^options nvidia NVreg_CheckPCIConfigSpace=(\d)",
                shell.read_file(MODPROBE_FILE),
                re.M,
            )
            self.loaded = int(match[1]) if match else 1
        self.load(shell)
        return 0, ""

    def smi(self, shell: FakeShell, argv: list[str], _: str) -> tuple[int, str]:
        if not self.there:
            return 9, "NVIDIA-SMI has failed"
        if "-pm" in argv:
            self.persistent = self.persists
        if "--auto-boost-default=0" in argv:
            self.auto_boost = False
        if "-ac" in argv:
            wish = argv[argv.index("-ac") + 1]
            if not self.supported:
                return 0, "Setting applications clocks is not supported for GPU 0"
            if wish != self.supported:
                return 3, f"Specified clock combination {wish} is not supported... Run -d SUPPORTED"
            self.clocks = wish
        if "SUPPORTED_CLOCKS" in argv and self.supported:
            memory, graphics = self.supported.split(",")
            return (
                0,
                f"GPU 00000000:00:1E.0\n    Memory : {memory} MHz\n  Graphics : {graphics} MHz\n",
            )
        memory, graphics = self.clocks.split(",") if self.supported else ("[N/A]", "[N/A]")
        on = "Enabled" if self.persistent else "Disabled"
        return 0, f"0, GPU-1, Tesla T4, {self.version}, {on}, {memory}, {graphics}\n"


def tune(plugin: NvidiaTune, *nodes: Node) -> None:
    plugin.run(list(nodes), nodes[0], "sgeadmin", "bash", {})


def test_a_driver_of_today_is_tuned_and_the_parameter_told_as_not_applicable(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "starcluster")
    driver = Driver()
    shell = driver.shell()
    tune(NvidiaTune(), FakeNode(shell=shell))
    assert (driver.persistent, driver.clocks, driver.auto_boost) == (True, "5001,1590", True)
    assert (driver.reloads, driver.early) == (0, 0)
    assert not shell.path_exists(MODPROBE_FILE)
    assert re.search("NVreg_CheckPCIConfigSpace: .*580.159.03 .*435", caplog.text)


def test_an_old_driver_loses_its_check_and_a_second_run_changes_nothing() -> None:
    driver = Driver(version="352.99", has_check=True)
    shell = driver.shell()
    node = FakeNode(shell=shell, instance_type="g2.2xlarge")
    tune(NvidiaTune(), node)
    assert (driver.loaded, driver.reloads, driver.early) == (0, 1, 1)
    assert "options nvidia-current NVreg_CheckPCIConfigSpace=0" in shell.read_file(MODPROBE_FILE)
    tune(NvidiaTune(), node)
    assert (driver.reloads, driver.early) == (1, 1)


def test_a_reload_that_does_not_take_the_parameter_is_no_success() -> None:
    driver = Driver(version="352.99", has_check=True)
    shell = driver.shell()
    load, driver.loaded = driver.load, 1

    def stubborn(shell: FakeShell) -> None:
        driver.loaded = 1
        load(shell)

    driver.load = stubborn  # type: ignore[method-assign]
    with pytest.raises(SetupError, match=r"CheckPCIConfigSpace .*1 .*/proc/driver/nvidia/params"):
        tune(NvidiaTune(), FakeNode(shell=shell))


def test_a_driver_in_use_is_named_with_who_uses_it() -> None:
    driver = Driver(version="352.99", has_check=True, busy=True)
    with pytest.raises(SetupError, match=r"Module nvidia is in use.*4711 python"):
        tune(NvidiaTune(), FakeNode(shell=driver.shell()))


def test_one_error_names_every_node_without_a_driver_and_the_others_are_tuned() -> None:
    good = Driver()
    nodes = [FakeNode(shell=good.shell("node001"))]
    nodes += [FakeNode(shell=Driver(there=False).shell(f"node00{n}")) for n in (2, 3)]
    with pytest.raises(SetupError) as caught:
        tune(NvidiaTune(), *nodes)
    assert sorted(caught.value.failed) == ["node002", "node003"]
    assert "c5.large" in caught.value.failed["node002"]
    assert good.persistent


def test_a_missing_driver_is_installed_when_one_is_named() -> None:
    driver = Driver(there=False)
    tune(NvidiaTune(driver="580-server"), FakeNode(shell=driver.shell()))
    assert driver.installed == ["580-server"]
    assert driver.persistent


def test_cards_without_clocks_and_old_families_with_auto_boost() -> None:
    driver = Driver(supported="")
    tune(NvidiaTune(clocks="5001,1590"), FakeNode(shell=driver.shell(), instance_type="p2.xlarge"))
    assert driver.auto_boost is False
    assert driver.clocks == "5001,585"


def test_clocks_that_the_card_has_not_are_an_error() -> None:
    with pytest.raises(SetupError, match="Specified clock combination 9,9"):
        tune(NvidiaTune(clocks="9,9"), FakeNode(shell=Driver().shell()))


def test_persistence_that_does_not_stay_on_is_an_error() -> None:
    with pytest.raises(SetupError) as caught:
        tune(NvidiaTune(), FakeNode(shell=Driver(persists=False).shell()))
    assert "GPU 0: " in caught.value.failed["node001"]
    assert "persistence mode" in caught.value.failed["node001"]


def test_wrong_arguments_are_refused_before_any_node_is_asked() -> None:
    with pytest.raises(ConfigError, match="clocks = fast"):
        NvidiaTune(clocks="fast")
    with pytest.raises(ConfigError, match="driver = 580; rm"):
        NvidiaTune(driver="580; rm")


@pytest.mark.parametrize("driver", ["", "580-server"])
def test_a_master_without_a_gpu_has_nothing_to_tune_and_a_node_must_have_one(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, driver: str
) -> None:
    monkeypatch.setattr(nvidia_tune.log, "propagate", True)
    caplog.set_level(logging.INFO)
    bare = FakeShell(name="master", programs={"sh": lambda *_: (1, "")})
    master = FakeNode(shell=bare, instance_type="m5.large")
    tune(NvidiaTune(driver=driver), master, FakeNode(shell=Driver().shell()))
    assert re.search(r"master: .*m5\.large", caplog.text)
    node = FakeNode(shell=FakeShell(name="node001", programs={"sh": lambda *_: (1, "")}))
    with pytest.raises(SetupError, match="node001"):
        tune(NvidiaTune(), master, node)
