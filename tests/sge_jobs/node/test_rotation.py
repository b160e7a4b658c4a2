"""A host leaves the rotation while its check fails."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from sge_jobs.node import rotation
from sge_jobs.node.claim import processes
from sge_jobs.node.claim.assignment import NodeSettings
from sge_jobs.node.claim.locks import Locks
from sge_jobs.node.failed_start import decode
from sge_jobs.node.gpus.inventory import Gpu, Inventory, boot_id, encode
from sge_jobs.node.rotation import IN_ROTATION, Rotation
from sge_jobs.node.start_check import fault
from tests.sge_jobs.node.claim.shepherds import record, shepherd


class Host:
    """A host whose check gives ``what``; its clock runs 5 s from report to report."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.what, self.checks, self.logged = 0.0, "", 0, []
        monkeypatch.setattr(rotation.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(rotation, "_log", self.logged.append)
        self.rotation = Rotation("node001", self.check)

    def check(self) -> str:
        self.checks += 1
        return self.what

    def reports(self, count: int) -> None:
        for _ in range(count):
            self.now += 5
            self.rotation.look()


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(monkeypatch)


def test_a_host_leaves_and_returns_and_each_is_logged_once(host: Host) -> None:
    host.reports(20)
    assert host.rotation.word() == IN_ROTATION
    assert host.checks <= 6, "a healthy host is checked seldom"
    host.what = "no space"
    host.reports(8)
    assert decode(host.rotation.word()).reason == "no space"
    host.what = "no space left"
    host.reports(8)
    assert decode(host.rotation.word()).reason == "no space left"
    host.what = ""
    host.reports(2)
    assert host.rotation.word() == IN_ROTATION
    assert len(host.logged) == 2


def test_one_failed_check_is_not_enough(host: Host) -> None:
    for what in ("x", "", "x", "", "x", ""):
        host.what = what
        host.reports(5 if not what else 1)
        assert host.rotation.fault is None


@pytest.fixture
def settings(tmp_path: Path) -> NodeSettings:
    known = Inventory(source="declared", gpus=[Gpu(index=0, uuid="GPU-0")])
    (tmp_path / "gpus").write_text(encode(known, boot_id()))
    (tmp_path / "run").mkdir(mode=0o755)
    made = NodeSettings()
    made.gpu_wait_s = 0.1
    made.cache, made.locks = str(tmp_path / "gpus"), str(tmp_path / "run" / "locks")
    return made


def test_a_check_passes_also_while_the_gpu_is_in_use(
    settings: NodeSettings, children: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "ROOT", os.getuid())
    assert fault(settings) == ""
    above = shepherd(children)
    locks = Locks(settings.locks, boot_id())
    assert locks.claim(1, ["GPU-0"], record(above, boot=boot_id()))[0] == ["GPU-0"]
    locks.close()
    assert fault(settings) == ""


def test_a_check_fails_as_the_start_of_a_job_does(settings: NodeSettings) -> None:
    fault(settings)
    blocked = os.open(f"{settings.locks}/claims", os.O_RDWR)
    fcntl.flock(blocked, fcntl.LOCK_EX)
    assert "claims" in fault(settings)
    os.close(blocked)
    Path(settings.locks, "GPU-0").unlink()
    Path(settings.locks, "GPU-0").symlink_to("/dev/null")
    assert "GPU-0" in fault(settings)
    settings.locks = "/proc/no/such"
    assert "/proc/no" in fault(settings)
    settings.cache = "/nonexistent"
    assert "no GPU" in fault(settings)
