"""SIGTERM and SIGHUP stop a command as Ctrl-C does, in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from starcluster.aws.ec2 import Ec2
from starcluster.cluster.operation import WAITING_FOR_SSH
from starcluster.config import config
from tests.waiting import until

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(settings: config.Config, aws: str, ec2: Ec2, tmp_path: Path) -> Iterator[Start]:
    """A function that starts ``starcluster``; what it prints goes to the file ``errors``."""
    ec2.zones()  # moto fails if the first requests to a region are concurrent
    begun: list[subprocess.Popen[str]] = []
    path = settings.path
    path.write_text(f"{path.read_text()}[aws info]\naws_endpoint_url = {aws}\n")
    given = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
    environment = os.environ | given | {"HOME": str(tmp_path)}

    def call(*words: str, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        # A shell without job control starts its background jobs with SIGINT ignored.
        argv = ["env", "--default-signal", *before, sys.executable, "-m", "starcluster"]
        argv += ["-c", str(path), "-r", "us-east-1"]
        with (tmp_path / "errors").open("w") as errors:
            process = subprocess.Popen(
                [*argv, *words],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                text=True,
            )
        begun.append(process)
        return process

    yield call
    for process in begun:
        process.kill()
        process.wait()


def waits_for_ssh(process: subprocess.Popen[str], errors: Path) -> None:
    until(lambda: process.poll() is not None or errors.read_text().count(WAITING_FOR_SSH) == 2)
    assert process.poll() is None, errors.read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_signal_ends_a_start_with_what_runs_and_costs(
    start: Start, ec2: Ec2, tmp_path: Path, number: signal.Signals
) -> None:
    process = start("start", "big")
    waits_for_ssh(process, tmp_path / "errors")
    process.send_signal(number)
    if number != signal.SIGINT:
        process.send_signal(signal.SIGTERM)  # a second one does not cut the report short
    assert process.wait(60) == 1
    text = (tmp_path / "errors").read_text()
    assert "Traceback" not in text
    error, exist, *fixes = text[text.index("Error: ") :].splitlines()
    assert error == "Error: interrupted" + (f" by {number.name}" * (number != signal.SIGINT))
    assert "2 instances exist (master, node001): " in exist
    assert [fix.partition("starcluster ")[2] for fix in fixes] == ["start -x big", "terminate big"]
    assert len(ec2.instances(cluster="big")) == 2


def test_a_start_under_nohup_survives_the_end_of_its_terminal(start: Start, tmp_path: Path) -> None:
    process = start("start", "big", before=("nohup",))
    waits_for_ssh(process, tmp_path / "errors")
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 1
    assert "Error: interrupted by SIGTERM\n" in (tmp_path / "errors").read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_load_balancer_with_what_runs(
    start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    errors = tmp_path / "errors"
    begun = start("start", "-o", "big")
    assert begun.wait(120) == 0, errors.read_text()
    process = start("loadbalance", "-i", "600", "big")
    until(lambda: process.poll() is not None or "retrying in 600 s" in errors.read_text(), 120)
    process.send_signal(number)
    assert process.wait(60) == 1
    text = errors.read_text()
    assert "Error: interrupted" in text
    assert "2 instances exist (master, node001): " in text
