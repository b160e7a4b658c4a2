"""Decisions from the output of modinfo, /proc and nvidia-smi."""

from __future__ import annotations

import pytest

from starcluster_plugins.nvidia_facts import (
    MODPROBE,
    decide_check,
    fabric_manager_problem,
    has_parameter,
    highest_clocks,
    loaded_value,
    needs_fabric_manager,
    parse_gpus,
    wants_auto_boost_off,
)

# Output of modinfo -p of a driver of 2015, shortened, and of a driver of 2025.
OLD = """\
NVreg_Mobile:int
NVreg_CheckPCIConfigSpace:int
NVreg_EnableMSI:int
NVreg_ModifyDeviceFiles:int
"""
NEW = """\
NVreg_RmMsg:charp
NVreg_DeviceFileGID:int
NVreg_EnableMSI:int
NVreg_EnablePCIeGen3:int
"""
OLD_PARAMS = "Mobile: 4294967295\nCheckPCIConfigSpace: 1\nEnableMSI: 1\n"
NEW_PARAMS = 'ResmanDebugLevel: 4294967295\nEnableMSI: 1\nRegistryDwords: ""\n'
GPUS = """\
0, GPU-1b2c, Tesla T4, 580.159.03, Disabled, 5001, 585
1, GPU-3d4e, NVIDIA A10G, 580.159.03, Enabled, [N/A], [N/A]
"""
CLOCKS = """
==============NVSMI LOG==============

Attached GPUs                             : 2
GPU 00000000:00:1E.0
    Supported Clocks
        Memory                            : 5001 MHz
            Graphics                      : 1590 MHz
            Graphics                      : 1575 MHz
        Memory                            : 405 MHz
            Graphics                      : 2000 MHz

GPU 00000000:00:1F.0
    Supported Clocks                      : N/A
"""


def test_an_old_driver_that_checks_gets_the_parameter_and_a_reload() -> None:
    found = decide_check(modinfo=OLD, params=OLD_PARAMS, configured="", driver="352.99")
    assert (found.write, found.reload) == (True, True)
    assert "is 1" in found.words


def test_a_driver_that_does_not_check_already_is_not_loaded_again() -> None:
    params = OLD_PARAMS.replace("Space: 1", "Space: 0")
    once = decide_check(modinfo=OLD, params=params, configured="", driver="352.99")
    assert (once.write, once.reload) == (True, False)
    again = decide_check(modinfo=OLD, params=params, configured=MODPROBE, driver="352.99")
    assert (again.write, again.reload) == (False, False)


def test_a_written_parameter_that_is_not_loaded_asks_for_the_reload_only() -> None:
    found = decide_check(modinfo=OLD, params=OLD_PARAMS, configured=MODPROBE, driver="352.99")
    assert (found.write, found.reload) == (False, True)


@pytest.mark.parametrize("configured", ["", MODPROBE])
def test_a_driver_without_the_parameter_is_told_as_such_and_not_written_to(configured: str) -> None:
    found = decide_check(modinfo=NEW, params=NEW_PARAMS, configured=configured, driver="580.159.03")
    assert (found.write, found.reload) == (False, False)
    assert found.words.startswith("NVreg_CheckPCIConfigSpace: ")
    assert "580.159.03" in found.words
    assert "435" in found.words


def test_an_old_driver_built_without_it_is_not_said_to_be_new() -> None:
    found = decide_check(modinfo="", params="", configured="", driver="390.157")
    assert "390.157" in found.words
    assert "435" not in found.words


def test_a_parameter_whose_name_only_begins_alike_is_another() -> None:
    assert not has_parameter("NVreg_CheckPCIConfigSpaceLater:int\n")
    assert has_parameter(OLD)
    assert loaded_value("UncheckPCIConfigSpace: 1\n") is None
    assert loaded_value(OLD_PARAMS) == 1


def test_gpus_of_nvidia_smi_and_cards_without_clocks() -> None:
    gpu, two = parse_gpus(GPUS)
    assert (gpu.index, gpu.name, gpu.driver, gpu.persistent) == (
        "0",
        "Tesla T4",
        "580.159.03",
        False,
    )
    assert (gpu.clocks, two.clocks, two.persistent) == ("5001,585", "", True)
    assert parse_gpus("NVIDIA-SMI has failed because it could not communicate\n") == []


def test_the_highest_graphics_clock_is_that_of_the_highest_memory_clock() -> None:
    assert highest_clocks(CLOCKS) == {"00000000:00:1E.0": "5001,1590"}
    assert highest_clocks("") == {}


def test_advice_by_instance_type() -> None:
    gpu, two = parse_gpus(GPUS)
    assert [wants_auto_boost_off(name) for name in ("g3.4xlarge", "p2.xlarge", "g4dn.xlarge")] == [
        True,
        True,
        False,
    ]
    assert needs_fabric_manager("p5.48xlarge", [gpu, two])
    assert not needs_fabric_manager("p5.4xlarge", [gpu])
    assert not needs_fabric_manager("g5.12xlarge", [gpu, two])


def test_fabric_manager_must_run_in_exactly_the_drivers_version() -> None:
    version = "Fabric Manager version is : 580.159.03"
    assert fabric_manager_problem(version, "580.159.03", active=True) == ""
    assert "journalctl" in fabric_manager_problem(version, "580.159.03", active=False)
    other = fabric_manager_problem(version, "580.95.05", active=True)
    assert "580.159.03" in other
    assert "580.95.05" in other
    missing = fabric_manager_problem("", "580.159.03", active=True)
    assert "nvidia-fabricmanager 580.159.03" in missing
