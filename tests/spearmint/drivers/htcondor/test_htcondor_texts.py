"""The submit description and the commands of HTCondor; tests/on_hosts has a real pool."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from spearmint.drivers import DriverSettings
from spearmint.drivers.htcondor import HTCondor
from spearmint.drivers.htcondor.commands import ask
from spearmint.drivers.htcondor.description import submit_description
from spearmint.drivers.queue import SubmitSpec
from spearmint.errors import DriverError, DriverUnreachable, InputError
from spearmint.resources import Resources

TOKEN = "0123456789ab"  # noqa: S105


def spec(avoid: tuple[str, ...] = (), label: str = "branin-7", **need: object) -> SubmitSpec:
    return SubmitSpec(
        token=TOKEN,
        label=label,
        argv=(sys.executable, "-c", "print('a  b')"),
        directory=Path("/data"),
        output=Path("/dev/null"),
        environment={},
        avoid=avoid,
        resources=Resources(**need),
    )


def commands(made: SubmitSpec) -> dict[str, str]:
    """Return the commands of a description; each is one line, and the last line is ``queue``."""
    *lines, last = submit_description(made).splitlines()
    assert last == "queue"
    found = dict(line.split(" = ", 1) for line in lines)
    assert len(found) == len(lines)
    return found


@pytest.mark.parametrize(
    ("need", "expected"),
    [
        ({}, {"request_gpus": "1", "request_cpus": "1", "should_transfer_files": "NO"}),
        ({"gpus": 2, "slots": 8}, {"request_gpus": "2", "request_cpus": "8"}),
        ({"walltime_s": 60.5}, {"allowed_job_duration": "61"}),
        ({"memory": "16G", "project": "lab"}, {"request_memory": "16G", "accounting_group": "lab"}),
        (
            {"requests": ("require_gpus=Capability >= 8.0", "Request_Disk = 10G")},
            {"require_gpus": "Capability >= 8.0", "request_disk": "10G", "request_gpus": "1"},
        ),
        ({"requests": ("request_gpus=3", "+WantX=true")}, {"request_gpus": "3", "+WantX": "true"}),
        (
            {"requests": ("job_machine_attrs=Arch",)},
            {"job_machine_attrs": "Arch, Machine"},
        ),
    ],
)
def test_resources_are_commands(need: dict[str, object], expected: dict[str, str]) -> None:
    assert expected.items() <= commands(spec(**need)).items()


@pytest.mark.parametrize(
    ("need", "expected"),
    [
        ({}, ""),
        ({"requests": ("requirements=HAS_GPU",)}, "(HAS_GPU) && "),
        ({"avoid": ("b", 'h"|| true')}, 'TARGET.Machine =!= "b" && '),
        (
            {"requests": ("requirements=A || B",), "avoid": ("b", "c")},
            '(A || B) && TARGET.Machine =!= "b" && TARGET.Machine =!= "c" && ',
        ),
    ],
)
def test_requirements_are_combined(need: dict[str, object], expected: str) -> None:
    made = commands(spec(**need))["requirements"]
    own = commands(spec())["requirements"]
    assert "MachineAttrMachine0" in own
    assert made == expected + own


def test_a_job_without_gpus_requests_none() -> None:
    assert "request_gpus" not in commands(spec(gpus=0))


def test_expressions_of_the_user_also_remove_a_job() -> None:
    own = commands(spec(requests=("periodic_remove=NumJobStarts > 3",)))["periodic_remove"]
    assert own.startswith("(NumJobStarts > 3) || (")
    assert own.endswith(commands(spec())["periodic_remove"])


@pytest.mark.parametrize(
    ("need", "word"),
    [
        ({"gpus": 0.25}, "0.25"),
        ({"parallel_environment": "smp"}, "--pe"),
        ({"queue": "gpu"}, "--queue"),
        ({"qos": "long"}, "--qos"),
        ({"constraint": "a100"}, "--constraint"),
        ({"options": ("-spool",)}, "-spool"),
        ({"options": ("-name", "other")}, "-name"),
        ({"options": ("-a", "queue 5")}, "-a"),
        ({"options": ("-rem", "other")}, "-rem"),
        ({"options": ("--name=other",)}, "--name=other"),
        ({"options": ("-maxjobs", "1", "other.sub")}, "other.sub"),
        ({"requests": ("MY.Cmd=/bin/sh",)}, "MY.Cmd"),
        ({"requests": ("+Arguments=x",)}, "Arguments"),
        ({"requests": ("use=feature",)}, "use"),
        ({"requests": ("universe=docker",)}, "universe"),
        ({"requests": ("Queue=3",)}, "Queue"),
        ({"requests": ("+SpearmintToken=1",)}, "SpearmintToken"),
        ({"requests": ("my.spearminttoken=1",)}, "spearminttoken"),
        ({"requests": ("request_disk=1\nqueue 9",)}, "request_disk"),
        ({"requests": ("request_disk=1 \\",)}, "request_disk"),
        ({"requests": ("queue 3",)}, "queue 3"),
        ({"memory": "1G\nqueue"}, "memory"),
        ({"setup": ("x" * 200_000,)}, "branin-7"),
    ],
)
def test_what_htcondor_cannot_do_is_refused(need: dict[str, object], word: str) -> None:
    with pytest.raises(InputError, match=word):
        submit_description(spec(**need))


@pytest.mark.parametrize("label", ["branin-7", "a b;$(x)\n-é", "", "-" * 300, 'a"b'])
def test_any_label_is_a_batch_name(label: str) -> None:
    name = commands(spec(label=label))["batch_name"]
    assert re.fullmatch(r"[A-Za-z0-9_.+=-]{1,80}", name)
    assert commands(spec(label=label))["My.SpearmintToken"] == f'"{TOKEN}"'


# The script in the arguments


def run(made: SubmitSpec, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the job as HTCondor does: with the arguments of the description."""
    found = re.fullmatch(r"\"'-c' '(.*)'\"", commands(made)["arguments"])
    assert found
    assert not re.search(r"\$+\(", found[1]), "a macro of HTCondor"
    script = found[1].replace("''", "'").replace('""', '"')
    return subprocess.run(
        ["/bin/bash", "-c", script],
        check=False,
        text=True,
        capture_output=True,
        env={"PATH": "/usr/bin:/bin", **variables},
    )


def job(tmp_path: Path, code: str, **need: object) -> SubmitSpec:
    return replace(
        spec(**need),
        argv=(sys.executable, "-c", code),
        directory=tmp_path,
        output=tmp_path / "a log's $(name)",
        environment={
            "VALUE": 'it\'s $HOME $$(Arch)\n"é" \\x41\udcff',
            "SPEARMINT_RERUN_EXIT_CODE": "99",
            "PYTHONPATH": str(Path.cwd()),
        },
    )


def test_the_script_runs_the_command_where_and_as_requested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/the user's")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not for jobs")
    code = (
        "import os; e = os.environ; print(os.getcwd(), ascii(e['VALUE']), e['GPUS'], e['HOME'],"
        " 'AWS_SECRET_ACCESS_KEY' in e)"
    )
    made = job(tmp_path, code, setup=("export GPUS=[$CUDA_VISIBLE_DEVICES]; cd /",))
    assert run(made, CUDA_VISIBLE_DEVICES="0").returncode == 0
    begin, end = f"{tmp_path} {made.environment['VALUE']!a}", "/the user's False"
    assert made.output.read_text() == f"{begin} [] {end}\n"
    run(made, CUDA_VISIBLE_DEVICES="GPU-1", _CONDOR_AssignedGPUs="GPU-1")
    assert made.output.read_text() == f"{begin} [] {end}\n{begin} [GPU-1] {end}\n"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("raise SystemExit(3)", 3),
        ("raise SystemExit(99)", 99),
        ("import os; os.kill(os.getpid(), 9)", -9),
    ],
)
def test_the_script_ends_as_the_command_does(tmp_path: Path, code: str, status: int) -> None:
    made = job(tmp_path, code)
    assert run(made).returncode == status
    assert "ExitCode =!= 99" in commands(made)["on_exit_remove"]


# The commands, as scripts


@pytest.fixture
def htcondor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HTCondor:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    says(tmp_path, "condor_config_val", out="/scratch, /hidden", status=0)
    return shared(tmp_path)


def shared(directory: Path) -> HTCondor:
    need = Resources(file_transfer="no")
    return HTCondor(DriverSettings(directory=directory, resources=need))


def says(directory: Path, name: str, *, out: str = "", err: str = "", status: int = 1) -> None:
    path = directory / name
    path.write_text(f"#!/bin/sh\ncat <<'E'\n{out}\nE\ncat >&2 <<'E'\n{err}\nE\nexit {status}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("err", "error"),
    [
        ("ERROR: on Line 3 of submit file: ...", DriverError),
        ("ERROR: Failed to connect to local queue manager\nSECMAN:2007:...", DriverUnreachable),
        ("ERROR: Can't find address of local schedd", DriverUnreachable),
        ("Neither the environment variable CONDOR_CONFIG, /etc/condor/", DriverUnreachable),
    ],
)
def test_a_refused_job(
    htcondor: HTCondor, tmp_path: Path, err: str, error: type[DriverError]
) -> None:
    says(tmp_path, "condor_submit", err=err)
    with pytest.raises(DriverError) as caught:
        htcondor.submit(spec(), inherit=[])
    assert type(caught.value) is error


def test_the_id_of_a_job_follows_warnings(htcondor: HTCondor, tmp_path: Path) -> None:
    says(tmp_path, "condor_submit", out="WARNING: 3.0 unused\n17.0 - 17.0", status=0)
    assert htcondor.submit(spec(), inherit=[]) == "17.0"


@pytest.mark.parametrize("where", ["directory", "output", "python"])
def test_files_that_jobs_do_not_see(htcondor: HTCondor, tmp_path: Path, where: str) -> None:
    says(tmp_path, "condor_submit", out="17.0 - 17.0", status=0)
    hidden = Path("/hidden/search")
    change = {"python": {"argv": (str(hidden),)}}.get(where, {where: hidden})
    with pytest.raises(InputError, match=r"/hidden/search.*\(MOUNT_UNDER_SCRATCH\)"):
        htcondor.submit(replace(spec(), **change), inherit=[])
    says(tmp_path, "condor_config_val", err="Not defined: MOUNT_UNDER_SCRATCH")
    assert shared(tmp_path).submit(replace(spec(), **change), inherit=[]) == "17.0"


def test_cancelling_an_ended_job_is_no_error(htcondor: HTCondor, tmp_path: Path) -> None:
    says(tmp_path, "condor_rm", out="Job 5.0 marked for removal", err="Job 3.0 not found")
    htcondor.cancel(["5.0", "3.0"])
    says(tmp_path, "condor_rm", err="Permission denied to remove job 3.0")
    with pytest.raises(DriverError, match=r"denied to remove job 3\.0"):
        htcondor.cancel(["3.0"])
    says(tmp_path, "condor_rm", err="SECMAN:2007:Failed\nNo result found for job 3.0")
    with pytest.raises(DriverUnreachable):
        htcondor.cancel(["3.0"])


@pytest.mark.parametrize("out", ["", "[\n]"])
def test_an_empty_queue(htcondor: HTCondor, tmp_path: Path, out: str) -> None:
    says(tmp_path, "condor_q", out=out, status=0)
    says(tmp_path, "condor_history", out=out, status=0)
    assert htcondor.jobs() == []
    assert htcondor.accounting("7.0") == []


def test_jobs_of_other_users_are_not_asked_for(htcondor: HTCondor, tmp_path: Path) -> None:
    (tmp_path / "condor_q").write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\n')
    (tmp_path / "condor_q").chmod(0o755)
    assert htcondor.jobs() == []
    owner = subprocess.run(["id", "-un"], check=True, capture_output=True, text=True).stdout.strip()
    assert f'&& Owner == "{owner}"' in (tmp_path / "asked").read_text()


def test_an_answer_that_is_not_json(htcondor: HTCondor, tmp_path: Path) -> None:
    says(tmp_path, "condor_q", out="-- Schedd: all is well", status=0)
    with pytest.raises(DriverError, match="all is well"):
        htcondor.jobs()
    says(tmp_path, "condor_q", out=json.dumps([{"ClusterId": 7, "JobStatus": 1}]), status=0)
    assert [job.id for job in htcondor.jobs()] == ["7.0"]


def test_a_machine_without_htcondor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(DriverUnreachable, match="condor_q not found"):
        ask("condor_q")


def test_the_preview_shows_the_script(htcondor: HTCondor) -> None:
    shown = htcondor.preview(spec(options=("-maxjobs", "9")))
    assert "condor_submit -terse -maxjobs 9 -" in shown
    assert "#     " + sys.executable in shown
