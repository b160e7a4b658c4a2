"""Jobs of HTCondor on hosts that share no files; tests/on_hosts has a real pool."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from spearmint.drivers import DriverSettings, QueueJobState
from spearmint.drivers.htcondor import HTCondor
from spearmint.drivers.htcondor.description import script_of, submit_description
from spearmint.drivers.htcondor.holds import UNFIT
from spearmint.drivers.htcondor.listing import parse_jobs
from spearmint.drivers.htcondor.transfer import Transfer
from spearmint.drivers.queue import SubmitSpec
from spearmint.errors import DriverError, DriverUnreachable, InputError
from spearmint.layout import write_json
from spearmint.resources import Resources
from spearmint.trial.transport.agent import OUTPUT
from spearmint.trial.transport.mailroom import OUTBOX, START

TOKEN = "0123456789ab"  # noqa: S105
BOX = Path("/data/a, b/.spearmint/transfer/x")


def spec(root: Path, language: str = "SHELL", **need: object) -> SubmitSpec:
    folder = root / "jobs" / "00000001"
    folder.mkdir(parents=True)
    write_json(folder / "trial.json", {"key": "k", "language": language})
    return SubmitSpec(
        token=TOKEN,
        label="branin-7",
        argv=("/of/the/submit/host/python", "-m", "spearmint.trial.runner", str(folder)),
        directory=root,
        output=root / "out.txt",
        environment={
            "PYTHONPATH": "/of/the/submit/host",
            "SPEARMINT_TRIAL_DIR": str(folder / "files"),
            "SPEARMINT_DONE_FILE": str(root / "done"),
            "VALUE": "it's $HOME",
        },
        folder=folder,
        resources=Resources(file_transfer="yes", **need),
    )


def commands(made: SubmitSpec, box: Path = BOX) -> dict[str, str]:
    *lines, _ = submit_description(made, box).splitlines()
    return dict(line.split(" = ", 1) for line in lines)


def test_the_submit_commands(tmp_path: Path) -> None:
    requests = ("transfer_input_files=/data/set", "on_exit_hold=ExitCode == 3")
    found = commands(spec(tmp_path, requests=requests))
    expected = {
        "initialdir": str(BOX),
        "should_transfer_files": "YES",
        "when_to_transfer_output": "ON_EXIT_OR_EVICT",
        "transfer_input_files": "spec.zip, state.zip, code.zip, experiment.zip, /data/set",
        "transfer_output_files": OUTBOX,
        "want_io_proxy": "True",
        "on_exit_hold": f"(ExitCode == 3) || ExitCode =?= {UNFIT}",
    }
    assert expected.items() <= found.items()
    assert "/of/the/submit/host " not in script_of(spec(tmp_path / "other"), BOX)


def test_data_is_not_sent_with_the_job(tmp_path: Path) -> None:
    box = tmp_path / "box"
    box.mkdir()
    (box / "data-1-x.zip").write_bytes(b"x" * 3000)
    made = spec(tmp_path)
    found = commands(made, box)
    assert "data-" not in found["transfer_input_files"]
    assert found["request_disk"] == "DiskUsage + 2"
    assert "want_io_proxy=False" in found["on_exit_hold_reason"]
    assert "SPEARMINT_TRANSPORT_DATA=data-1-x.zip" in script_of(made, box)
    done = run(made, tmp_path / "host", box)  # without a proxy
    assert done.returncode == UNFIT
    assert "ENABLE_CHIRP_IO" in (tmp_path / "host" / OUTBOX / START).read_text()
    need = replace(made.resources, requests=("request_disk=9G", "want_io_proxy=False"))
    found = commands(replace(made, resources=need), box)
    assert found["request_disk"] == "9G"
    assert found["want_io_proxy"] == "False"


@pytest.mark.parametrize("requests", [(), ("Want_IO_Proxy = false",)])
def test_without_a_proxy_all_files_are_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, requests: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    says(tmp_path, "condor_submit", "17.0 - 17.0")
    made = spec(tmp_path / "search", requests=requests)
    (made.directory / "data.bin").write_bytes(b"x" * (1 << 20))
    queue = HTCondor(DriverSettings(directory=made.directory, resources=made.resources))
    queue.submit(made, inherit=[])
    (box,) = (made.directory / ".spearmint" / "transfer").glob(f"{TOKEN}.*")
    assert len(list(box.glob("data-*"))) == (not requests)


@pytest.mark.parametrize("name", ["a\nb", "a$(x)", "a$$(x)", "b "])
def test_a_directory_that_a_description_cannot_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="Rename"):
        commands(spec(tmp_path), tmp_path / name)


def run(made: SubmitSpec, host: Path, box: Path = BOX) -> subprocess.CompletedProcess[str]:
    """Run the job's script in its own directory of a host, with an agent of the test."""
    package = host / "code.zip" / "spearmint" / "trial" / "transport"
    package.mkdir(parents=True)
    for path in (package, *package.parents[:2]):
        (path / "__init__.py").touch()
    (package / "agent.py").write_text(
        "import os\nprint('agent', os.environ['VALUE'], os.getcwd(), os.environ['HOME'])\n"
        "print('SPEARMINT_TRIAL_DIR' in os.environ, os.environ['SPEARMINT_TRANSPORT_DONE'])\n"
    )
    return subprocess.run(
        ["/bin/bash", "-c", script_of(made, box)],
        check=False,
        capture_output=True,
        text=True,
        env={"PATH": f"{host}/bin:/usr/bin:/bin", "_CONDOR_SCRATCH_DIR": str(host)},
    )


def python3(host: Path, text: str) -> None:
    """Make the first python3 and python of a host a script."""
    (host / "bin").mkdir(parents=True)
    for name in ("python3", "python"):
        (host / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (host / "bin" / name).chmod(0o755)


def test_the_job_uses_a_python_of_its_host(tmp_path: Path) -> None:
    host = tmp_path / "a host"
    python3(host, f'exec {sys.executable} -S "$@"')
    done = run(spec(tmp_path), host)
    assert done.returncode == 0, done.stderr
    said = (host / OUTPUT).read_text()
    assert said == f"agent it's $HOME {host} {host}\nFalse {tmp_path / 'done'}\n"


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("SHELL", "exit 1"),
        ("PYTHON", f'exec {sys.executable} -S "$@"'),
        ("FUNCTION", f'exec {sys.executable} -S "$@"'),
    ],
    ids=["too old", "without numpy", "without cloudpickle"],
)
def test_a_host_without_a_fit_python(tmp_path: Path, language: str, text: str) -> None:
    host = tmp_path / "host"
    python3(host, text)
    made = spec(tmp_path, language)
    assert run(made, host).returncode == UNFIT
    assert "numpy" in (host / OUTBOX / START).read_text()
    assert "no Python 3.11" in commands(replace(made))["on_exit_hold_reason"]


def test_a_host_without_the_virtual_environment(tmp_path: Path) -> None:
    host = tmp_path / "host"
    assert run(spec(tmp_path, venv=Path("/no/such venv")), host).returncode == UNFIT
    assert "/no/such venv is missing" in (host / OUTBOX / START).read_text()


def test_a_job_that_is_held_for_its_host_is_removed() -> None:
    held = {"ClusterId": 1, "JobStatus": 5, "HoldReasonCode": 3}
    states = [job.state for job in parse_jobs([held, {**held, "HoldReasonSubCode": UNFIT}])]
    assert states == [QueueJobState.HELD, QueueJobState.ENDING]


# Whether the hosts share files


def says(directory: Path, name: str, out: str) -> None:
    (directory / name).write_text(f"#!/bin/sh\ncat <<'E'\n{out}\nE\n")
    (directory / name).chmod(0o755)


@pytest.mark.parametrize(
    ("domains", "is_used"),
    [
        ({"master": "here", "node001": "HERE"}, False),
        ({"master": "here", "node001": "there"}, True),
        ({"node001": "there", "node002": "here"}, False),
        ({"master": "here"}, False),
    ],
)
@pytest.mark.parametrize("wanted", ["auto", "yes", "no"])
def test_the_pool_tells_whether_hosts_share_files(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    domains: dict[str, str],
    is_used: bool,
    wanted: str,
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    says(tmp_path, "condor_config_val", "here\nmaster")
    ads = [{"Machine": name, "FileSystemDomain": domain} for name, domain in domains.items()]
    says(tmp_path, "condor_status", json.dumps(ads))
    need = Resources(file_transfer=wanted)
    queue = HTCondor(DriverSettings(directory=tmp_path, resources=need))
    expected = {"auto": is_used, "yes": True, "no": False}[wanted]
    assert queue.shares_files() is not expected


def test_hosts_that_join_later_may_share_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    says(tmp_path, "condor_config_val", "here\nmaster")
    queue = HTCondor(DriverSettings(directory=tmp_path, resources=Resources()))
    hosts: list[dict[str, str]] = []
    says(tmp_path, "condor_status", json.dumps(hosts))
    with pytest.raises(DriverUnreachable, match="no host yet"):
        queue.shares_files()
    hosts.append({"Machine": "master", "FileSystemDomain": "here"})
    says(tmp_path, "condor_status", json.dumps(hosts))
    assert queue.shares_files()
    hosts.append({"Machine": "node001", "FileSystemDomain": "there"})
    says(tmp_path, "condor_status", json.dumps(hosts))
    assert not queue.shares_files()


def test_a_user_who_asks_htcondor_for_transfer_gets_no_other(tmp_path: Path) -> None:
    need = Resources(requests=("should_transfer_files = IF_NEEDED",))
    assert not Transfer(DriverSettings(directory=tmp_path, resources=need)).is_used()


def test_submit_packs_and_jobs_unpacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    says(tmp_path, "condor_submit", "17.0 - 17.0")
    says(tmp_path, "condor_q", "[]")
    made = spec(tmp_path / "search")
    queue = HTCondor(DriverSettings(directory=made.directory, resources=made.resources))
    shown = queue.preview(made)
    assert "spearmint.trial.transport.agent" in shown
    assert not (made.directory / ".spearmint").exists()
    assert queue.submit(made, inherit=[]) == "17.0"
    (box,) = (made.directory / ".spearmint" / "transfer").glob(f"{TOKEN}.*")
    names = {"address.json", "code.zip", "experiment.zip", "spec.zip", "state.zip"}
    assert {path.name for path in box.iterdir()} == names
    (box / OUTBOX).mkdir()
    (box / OUTBOX / START).write_text("no Python\n")
    for _ in range(2):
        queue.jobs()
    assert made.output.read_text() == "no Python\n"
    box.parent.chmod(0o500)
    if os.geteuid():
        with pytest.raises(DriverError, match=re.escape("cannot pack")):
            queue.submit(made, inherit=[])
    box.parent.chmod(0o700)
