"""Which jobs and users the device files of GPUs name, and why a host cannot restrict them."""

from __future__ import annotations

import os
import pwd
import struct
from pathlib import Path

import pytest

from sge_jobs.node import devices as module
from sge_jobs.node.claim.lock_state import LockState
from sge_jobs.node.claim.record import Record
from sge_jobs.node.devices import DeviceRule, Devices

ME = pwd.getpwuid(os.getuid()).pw_name


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    for minor, uuid in enumerate(("GPU-a", "GPU-b", "GPU-????")):
        folder = tmp_path / "driver" / "gpus" / f"0000:0{minor}"
        folder.mkdir(parents=True)
        (folder / "information").write_text(f"GPU UUID: \t {uuid}\nDevice Minor: \t {minor}\n")
    (tmp_path / "driver" / "params").write_text("ModifyDeviceFiles: 0\nDeviceFileMode: 432\n")
    return tmp_path / "driver"


def record(group: int, share: int = 1000, user: str = ME) -> Record:
    return Record(
        job="1", user=user, boot="b", shepherd=1, shepherd_started=1, group=group, share=share
    )


def test_a_list_names_the_groups_of_jobs_and_the_user_of_a_share() -> None:
    rows = _rows(LockState(uuid="GPU-a", holders=[record(7), record(5)]))
    assert [(tag, id) for tag, _, id in rows if tag in (2, 8)] == [(8, 5), (8, 7)]
    assert [mode for tag, mode, _ in rows if tag in (4, 32)] == [0, 0]
    shared = LockState(uuid="GPU-a", holders=[record(7, 250), record(0, 250, "no such user")])
    assert [(tag, id) for tag, _, id in _rows(shared) if tag in (2, 8)] == [
        (2, os.getuid()),
        (8, 7),
    ]
    assert not [tag for tag, _, _ in _rows(LockState(uuid="GPU-a")) if tag in (2, 8)]


def _rows(state: LockState) -> list[tuple[int, int, int]]:
    return list(struct.iter_unpack("<HHI", module._list_for(state)[4:]))


def test_why_a_host_cannot_restrict_devices(driver: Path) -> None:
    made = Devices(str(driver))
    assert made.problem(["GPU-a", "GPU-b"]) == ""
    assert "MIG-1" in made.problem(["GPU-a", "MIG-1"])
    (driver / "params").write_text("ModifyDeviceFiles: 1\n")
    assert "NVreg_ModifyDeviceFiles=0" in made.problem(["GPU-a"])
    assert Devices("/nowhere").problem(["GPU-a"])


def test_a_rule_closes_opens_and_says_what_fails(
    driver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    made = Devices(str(driver))
    monkeypatch.setattr(made, "close", lambda states: calls.append("close"))
    monkeypatch.setattr(made, "open", lambda: calls.append("open"))
    rule = DeviceRule(made, str(tmp_path / "mark"))
    states = [LockState(uuid="GPU-a")]
    rule.apply(states)
    assert (calls, rule.closed) == ([], False)
    rule.wanted = True
    rule.apply(states)
    assert (calls, rule.closed) == (["close"], True)
    later = DeviceRule(made, str(tmp_path / "mark"))  # the sensor has restarted
    later.apply(states)
    later.apply(states)
    assert (calls, later.closed) == (["close", "open"], False)
    rule.apply([LockState(uuid="GPU-z")])
    assert (rule.closed, "GPU-z" in rule.problem) == (False, True)

    def fail(states: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr(made, "close", fail)
    rule.apply(states)
    assert (rule.closed, "no space" in rule.problem) == (False, True)
