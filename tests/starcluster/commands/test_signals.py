"""SIGTERM and SIGHUP stop a command as Ctrl-C does, in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from starcluster.aws.client import AwsClient
from starcluster.aws.ec2 import Ec2
from starcluster.cli.signals import Signalled
from starcluster.cluster.operation import WAITING_FOR_SSH
from starcluster.config import config
from tests.commands import starcluster
from tests.waiting import until

Run = Callable[..., "subprocess.CompletedProcess[str]"]
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
    until(lambda: process.poll() is not None or errors.read_text().count(WAITING_FOR_SSH) >= 2)
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
    assert process.wait() == 128 + number
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
    assert process.wait() == 143
    assert "Error: interrupted by SIGTERM\n" in (tmp_path / "errors").read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_load_balancer_with_what_runs(
    start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    errors = tmp_path / "errors"
    begun = start("start", "-o", "big")
    assert begun.wait() == 0, errors.read_text()
    process = start("loadbalance", "-i", "600", "big")
    until(lambda: process.poll() is not None or "retrying in 600 s" in errors.read_text(), 120)
    process.send_signal(number)
    assert process.wait() == 128 + number
    text = errors.read_text()
    assert "Error: interrupted" in text
    assert "2 instances exist (master, node001): " in text


def interrupted_in(monkeypatch: pytest.MonkeyPatch, request: str) -> None:
    """Raise KeyboardInterrupt directly after a request to AWS."""
    original = AwsClient.call

    def call(self: AwsClient, service: str, operation: str, **arguments: Any) -> dict[str, Any]:
        answer = original(self, service, operation, **arguments)
        if operation == request:
            raise Signalled(signal.SIGTERM)
        return answer

    monkeypatch.setattr(AwsClient, "call", call)


@pytest.fixture
def run(settings: config.Config, aws: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A function that runs ``starcluster`` in this process."""
    settings.path.write_text(f"{settings.path.read_text()}[aws info]\naws_endpoint_url = {aws}\n")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    return lambda *words: starcluster("-c", settings.path, "-r", "us-east-1", *words)


@pytest.mark.parametrize(
    ("words", "request_of_aws", "said"),
    [
        (("start", "--skip-validation", "big"), "CreateSecurityGroup", "no instances"),
        (("listregions",), "DescribeRegions", "nothing was launched or changed"),
        (("createkey", "-o", "new.pem", "new"), "CreateKeyPair", "after CreateKeyPair"),
    ],
)
def test_ctrl_c_before_a_launch_says_what_was_changed(
    run: Run,
    ec2: Ec2,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    request_of_aws: str,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    interrupted_in(monkeypatch, request_of_aws)
    done = run(*words)
    assert done.returncode == 143
    assert "Error: interrupted by SIGTERM" in done.stderr
    assert said in done.stderr
    assert "Aborted" not in done.stdout + done.stderr
    assert ec2.instances() == []


def test_a_question_without_an_answer_changes_nothing(run: Run, ec2: Ec2) -> None:
    done = run("terminate", "big")
    assert done.returncode == 1
    assert "nothing was launched or changed" in done.stderr
    assert "Aborted" not in done.stdout + done.stderr
