"""The submit description of a job, and the bash script in its arguments."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from spearmint.drivers.htcondor.holds import REMOVED_HOLDS
from spearmint.drivers.htcondor.transfer import transfer_commands, transfer_script
from spearmint.drivers.job_setup import job_script
from spearmint.drivers.queue import SubmitSpec
from spearmint.drivers.queue_commands import job_environment, plain_name
from spearmint.errors import InputError
from spearmint.resources import Resources, submit_arguments

RERUN = 99
"""Exit status of the trial's process with which the job goes back to the queue."""
TOKEN = "SpearmintToken"  # noqa: S105 - an attribute
"""Attribute of a job with its token."""
ID_VARIABLE = "CONDOR_JOB_ID"

_RERUNS = 6
_VACATE_S = "20"  # from SIGTERM to SIGKILL; the machines' own limit is 10 minutes
_LENGTH = 100_000  # Linux accepts arguments of up to 128 KiB
# A job without GPUs sees those of other jobs, unless the pool confines devices.
_NO_GPUS = '[ -n "${_CONDOR_AssignedGPUs-}" ] || export CUDA_VISIBLE_DEVICES='
_COMMAND = re.compile(r"(?:\+|MY\.)?[A-Za-z_][A-Za-z0-9_.]*", re.IGNORECASE)
_SPECIAL = re.compile(r"[^ -~]|[\\'\"$]")
# Commands and attributes that would submit something else than one job with this script and token.
_FORBIDDEN = {
    *("arguments", "args", "executable", "environment", "env", "queue", "universe", "initialdir"),
    *("output", "error", "input", "transfer_executable", "on_exit_remove", "getenv", "max_retries"),
    *("include", "if", "else", "elif", "endif", "count", "iwd", "noop_job", "use"),
    *("cmd", "in", "out", "err", "jobuniverse", "owner", "clusterid", "procid", TOKEN.lower()),
}
# condor_submit accepts prefixes of its options, and the names of other descriptions.
_OPTIONS = {"-debug": 0, "-maxidle": 1, "-maxjobs": 1}
"""Number of values of the options of condor_submit that change no job."""
_HOST = re.compile(r"[A-Za-z0-9_.-]+")
# The collector lists a lost machine for another 15 minutes. Do not offer it the job that it lost:
# with a free GPU it can be the negotiator's first choice each time. A machine that has ended the
# job itself reports again at once, within the 5 s. Machines do not see LastHeardFrom.
_NOT_WHERE_LOST = (
    "(TARGET.Machine =!= MY.MachineAttrMachine0 || TARGET.LastHeardFrom =?= undefined"
    " || TARGET.LastHeardFrom >= MY.EnteredCurrentStatus - 5)"
)


def script_of(spec: SubmitSpec, box: Path | None = None) -> str:
    """Return the bash script of a job; raises InputError if bash could not run it.

    Args:
        spec: The job.
        box: Mailbox of a job whose host does not share the experiment's directory.
    """
    if box is not None:
        return transfer_script(spec, box, exports=[_NO_GPUS])
    inherited = [f"export {name}={_bash(value)}" for name, value in job_environment().items()]
    exports = [*inherited, _NO_GPUS]
    # HTCondor reruns a job with this status, up to a number of starts: on_exit_remove.
    return job_script(spec, exports=exports, rerun="false", give_up=f"exit {RERUN}")


def submit_description(spec: SubmitSpec, box: Path | None = None) -> str:
    """Return the submit description, without newlines inside of its values.

    Args:
        spec: The job.
        box: As for :func:`script_of`.

    Raises:
        InputError: HTCondor could not run the job.
    """
    need = spec.resources
    _check(need)
    script = _bash(script_of(spec, box))
    if len(script) > _LENGTH:
        raise InputError(f"cannot submit job {spec.label!r}: its variables and setup are too long")
    own = dict(_request(request) for request in need.requests)
    commands = {
        "executable": "/bin/bash",
        "transfer_executable": "false",
        "arguments": _quoted("-c", f"eval {script}"),
        "environment": f'"{ID_VARIABLE}=$(ClusterId).$(ProcId)"',
        # The script itself changes the directory and opens the log, so that it can retry.
        "initialdir": "/",
        "output": "/dev/null",
        "error": "/dev/null",
        "should_transfer_files": "NO",
        "job_max_vacate_time": _VACATE_S,
        "batch_name": plain_name(spec.label) or "spearmint",
        f"My.{TOKEN}": f'"{spec.token}"',
        **_resources(need),
        **own,
        **_policies(need, own, spec.avoid),
        "on_exit_remove": f"ExitCode =!= {RERUN} || NumJobStarts >= {_RERUNS}",
        **(transfer_commands(box, own) if box is not None else {}),
    }
    return "".join(f"{name} = {value}\n" for name, value in commands.items()) + "queue\n"


def _resources(need: Resources) -> dict[str, str]:
    commands = {"request_cpus": str(need.slots)}
    if need.gpus:
        commands["request_gpus"] = f"{need.gpus:g}"
    if need.memory:
        commands["request_memory"] = need.memory
    if need.project:
        commands["accounting_group"] = need.project
    if need.walltime_s is not None:
        commands["allowed_job_duration"] = str(-int(-need.walltime_s // 1))
    return commands


def _policies(need: Resources, own: dict[str, str], avoid: Sequence[str]) -> dict[str, str]:
    """Return expressions that combine those of the user with those of the driver."""
    commands = {}
    remove = [own["periodic_remove"]] if "periodic_remove" in own else []
    remove.append(REMOVED_HOLDS)
    commands["periodic_remove"] = " || ".join(f"({expression})" for expression in remove)
    recorded = [own["job_machine_attrs"]] if "job_machine_attrs" in own else []
    commands["job_machine_attrs"] = ", ".join([*recorded, "Machine"])
    wanted = [f"({own['requirements']})"] if "requirements" in own else []
    wanted += [f'TARGET.Machine =!= "{host}"' for host in avoid if _HOST.fullmatch(host)]
    commands["requirements"] = " && ".join([*wanted, _NOT_WHERE_LOST])
    return commands


def _request(request: str) -> tuple[str, str]:
    """Return ``-l NAME=VALUE`` as a line of the description; names of commands in lower case."""
    name, equals, value = (part.strip() for part in request.partition("="))
    wrong = not equals or not _COMMAND.fullmatch(name) or any(c in value for c in "\r\n\0")
    if wrong or value.endswith("\\") or value.startswith("@="):
        raise InputError(
            f"cannot request {request!r} from HTCondor",
            "Expected a submit command: -l request_disk=10G, -l 'requirements=HAS_GPU'.",
        )
    if name.lower().removeprefix("+").removeprefix("my.") in _FORBIDDEN:
        raise InputError(
            f"driver HTCONDOR does not support the submit command {name}",
            "Each trial is one job in the vanilla universe, found by its attribute.",
        )
    return (name if "." in name or "+" in name else name.lower()), value


def _check(need: Resources) -> None:
    submit_arguments(need, "HTCONDOR")
    for value, option, fix in (
        (need.parallel_environment, "--pe (parallel_environment)", "--slots requests cores."),
        (need.queue, "--queue", "HTCondor has no queues; select hosts: -l 'requirements=...'"),
        (need.gpus % 1, f"a share of a GPU: --gpus={need.gpus:g}", "Request whole GPUs."),
    ):
        if value:
            raise InputError(f"driver HTCONDOR does not support {option}", fix)
    if any(character in text for text in (need.memory, need.project) for character in "\r\n"):
        raise InputError("a value contains a line break: memory or project")
    _check_options(need.options)


def _check_options(options: Sequence[str]) -> None:
    left = list(options)
    while left:
        name = left.pop(0)
        if name not in _OPTIONS:
            raise InputError(
                f"driver HTCONDOR does not support {name!r} for condor_submit",
                f"Use submit commands, -l NAME=VALUE, or one of {', '.join(_OPTIONS)}.",
            )
        del left[: _OPTIONS[name]]


def hidden_by(paths: Sequence[Path], setting: str) -> tuple[Path, Path] | None:
    """Return the first path that jobs do not see, and the directory that hides it.

    Args:
        setting: Value of ``MOUNT_UNDER_SCRATCH``: of these directories each job has its own.
    """
    hiding = [Path(word) for word in re.split(r"[\s,\"]+", setting) if word.startswith("/")]
    for path in paths:
        for directory in hiding:
            if path.is_relative_to(directory):
                return path, directory
    return None


def _bash(text: str) -> str:
    """Return a word of bash without quotation marks or dollar signs inside, which HTCondor reads.

    Bash's own ``$'...'`` also keeps a job readable: only special characters are encoded.
    """
    return f"$'{_SPECIAL.sub(_encoded, text)}'"


def _encoded(found: re.Match[str]) -> str:
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(found[0]))


def _quoted(*arguments: str) -> str:
    """Return arguments in HTCondor's own quotation."""
    words = ("'" + word.replace("'", "''").replace('"', '""') + "'" for word in arguments)
    return '"' + " ".join(words) + '"'
