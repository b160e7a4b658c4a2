"""The balancer keeps its hands off while another process sets up nodes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from starcluster.balance.observation import setups as observed
from starcluster.balance.observation.setups import EXPECT_S, Setups
from starcluster.cluster import setting_up
from starcluster.cluster.setting_up import KEEP_S, SettingUp
from starcluster.commands import runplugin
from starcluster.errors import SshError
from starcluster.launch.claim.claims import Claim
from starcluster.launch.claim.process import this_process
from tests.starcluster.balance.test_journal import ThisMachine

BOB, ANN = "elsewhere 7 1.00", "elsewhere 8 1.00"
DONE = Claim(
    id="lt-1",
    cluster="c",
    by="bob@laptop",
    command="start -x",
    process=BOB,
    since=datetime.now(UTC),
    age_s=9.0,
    done_s=5.0,
)


class Shell(ThisMachine):
    """The master: this machine, unless it does not answer."""

    answers = True

    def checked(self, argv: Any, *, stdin: str = "", timeout_s: float = 0) -> str:
        if not self.answers:
            raise SshError("master: no answer")
        return super().checked(argv, stdin=stdin)

    def close(self) -> None:
        pass


class Bench:
    """The notes of processes, the claim that AWS tells, and what a balancer makes of them."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch, self.claim = patch, None
        self.ssh: Any = Shell()
        self.cluster: Any = SimpleNamespace(master=SimpleNamespace(ssh=self.ssh))
        self.setups = Setups(SimpleNamespace(ec2=None, name="c"))  # type: ignore[arg-type]
        patch.setattr(observed, "claim_of", lambda *_: self.claim)
        # A note of a test that leaves it must not be renewed after the test, in the real folder.
        patch.setattr(setting_up, "RENEW_S", 1e6)

    def by(self, process: str) -> SettingUp:
        with self._patch.context() as patched:
            patched.setattr(setting_up, "this_process", lambda: (process, process))
            return SettingUp(self.ssh, Shell)  # type: ignore[arg-type]

    def busy(self) -> str:
        found = self.setups.running(self.cluster)
        return "" if found is None else found.process


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(setting_up, "FOLDER", str(tmp_path / "new/setups"))
    return Bench(monkeypatch)


def test_setups_of_others_are_seen_until_the_last_one_ends(bench: Bench, tmp_path: Path) -> None:
    assert (bench.busy(), bench.setups.ended_s) == ("", None)
    with bench.by(BOB):
        with bench.by(ANN):
            assert bench.busy() in (BOB, ANN)
        assert bench.busy() == BOB
        assert (tmp_path / "new/setups").stat().st_mode & 0o77 == 0
    assert bench.busy() == ""
    assert bench.setups.ended_s is not None
    assert 0 <= bench.setups.ended_s < 60
    with SettingUp(bench.ssh, Shell):  # type: ignore[arg-type]
        assert bench.busy() == ""  # its own


def test_a_setup_that_was_killed_does_not_count_for_long(bench: Bench, tmp_path: Path) -> None:
    bench.by(BOB).__enter__()
    (file,) = (tmp_path / "new/setups").iterdir()
    lines = file.read_text().splitlines()
    ahead = int(lines[1]) + 10 * KEEP_S  # the clock of the master was changed
    for until, busy in ((int(lines[1]), BOB), (int(lines[0]), ""), (ahead, "")):
        file.write_text("\n".join([lines[0], str(until), *lines[2:]]) + "\n")
        assert bench.busy() == busy
    here = this_process()[0].split()[0]
    bench.by(f"{here} 999999999 1.00").__enter__()  # has ended, on this machine
    assert bench.busy() == ""


def test_a_setup_is_expected_after_its_instances_were_started(bench: Bench) -> None:
    bench.claim = DONE  # type: ignore[assignment]
    assert bench.busy() == BOB  # still boots
    with bench.by(BOB):
        bench.claim = None
        assert bench.busy() == BOB
    assert bench.busy() == ""


@pytest.mark.parametrize(
    "claim",
    [
        replace(DONE, done_s=EXPECT_S + 1),
        replace(DONE, command="stop"),
        replace(DONE, process=this_process()[0]),
    ],
)
def test_other_changes_are_followed_by_no_setup(bench: Bench, claim: Claim) -> None:
    bench.claim = claim  # type: ignore[assignment]
    assert bench.busy() == ""


def test_a_command_that_changes_instances_counts_too(bench: Bench) -> None:
    bench.claim = replace(DONE, command="removenode", done_s=None)  # type: ignore[assignment]
    assert bench.busy() == BOB


def test_what_the_master_said_last_counts_while_it_does_not_answer(bench: Bench) -> None:
    with bench.by(BOB):
        assert bench.busy() == BOB
        bench.ssh.answers = False
        assert bench.busy() == BOB
        bench.setups._read_at -= KEEP_S + 1
        assert bench.busy() == ""
        bench.ssh.answers = True


def test_a_setup_without_the_master_goes_on(bench: Bench) -> None:
    bench.ssh.answers = False
    with bench.by(BOB):
        pass


def test_a_plugin_that_runs_on_a_cluster_is_a_setup(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy: list[str] = []
    cluster = SimpleNamespace(
        name="c", nodes=["master"], template=None, close=list, setting_up=lambda: bench.by(BOB)
    )
    monkeypatch.setattr(runplugin, "load_plugins", list)
    monkeypatch.setattr(runplugin, "find", lambda *_: cluster)
    monkeypatch.setattr(runplugin, "run_hook", lambda *_: busy.append(bench.busy()))
    app = SimpleNamespace(ec2=None, config=SimpleNamespace(plugin=str))
    done = CliRunner().invoke(runplugin.runplugin, ["tune", "c"], obj=app)
    assert done.exit_code == 0, done.output
    assert (busy, bench.busy()) == ([BOB], "")
