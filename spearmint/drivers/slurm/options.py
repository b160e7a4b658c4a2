"""The options of sbatch for a job."""

from __future__ import annotations

import re
from collections.abc import Sequence

from spearmint.drivers.queue import SubmitSpec
from spearmint.drivers.queue_commands import plain_name
from spearmint.errors import InputError
from spearmint.resources import Resources, submit_arguments

_REQUEST = re.compile(r"[a-z][a-z0-9-]*(=.*)?", re.DOTALL)
# They would submit something else than one job with this script and this name.
_FORBIDDEN = (
    *("-a", "--array", "-J", "--job-name", "-M", "--clusters", "-W", "--wait", "--wrap"),
    *("--test-only", "--help", "--usage", "-V", "--version"),
)
_GPU_OPTIONS = ("--gres", "--gpus", "--gpus-per-node", "--gpus-per-task", "-G")
_EXCLUDE = ("-x", "--exclude")


def sbatch_argv(spec: SubmitSpec) -> list[str]:
    """Return the arguments of sbatch, which reads the script from standard input.

    Raises:
        InputError: Slurm could not run the job.
    """
    need = spec.resources
    own = [*_requests(need), *submit_arguments(need, "SLURM"), *need.options]
    _check(need, own)
    # The script itself changes the directory and opens the log, so that it can retry.
    argv = ["--parsable", f"--job-name={job_name(spec)}", "--export=ALL", "--requeue"]
    argv += ["--chdir=/", "--output=/dev/null", "--error=/dev/null"]
    tasks = "--ntasks=1" if need.nodes == 1 else "--ntasks-per-node=1"
    argv += [f"--nodes={need.nodes}", tasks, f"--cpus-per-task={need.slots}"]
    if need.gpus and not _given(own, _GPU_OPTIONS):
        argv.append(f"--gres=gpu:{need.gpus:g}")
    if need.walltime_s is not None:
        argv.append(f"--time={_time(need.walltime_s)}")
    for option, value in (
        ("--mem", need.memory),
        ("--partition", need.queue),
        ("--account", need.project),
    ):
        argv += [f"{option}={value}"] if value else []
    argv += own
    if spec.avoid:
        argv.append(f"--exclude={','.join([*_given(own, _EXCLUDE)[-1:], *spec.avoid])}")
    return argv


def job_name(spec: SubmitSpec) -> str:
    """Return the name of a job: the label in ASCII, and the token."""
    return f"{plain_name(spec.label)}-{spec.token}"


def partition_of(need: Resources) -> str:
    """Return the partitions of a job; empty for the default partition."""
    own = [*_requests(need), *need.options]
    return "".join(_given(own, ("-p", "--partition"))[-1:]) or need.queue


def _requests(need: Resources) -> list[str]:
    """Return ``-l NAME=VALUE`` as ``--NAME=VALUE``."""
    wrong = [request for request in need.requests if not _REQUEST.fullmatch(request)]
    if wrong:
        raise InputError(
            f"cannot request {wrong[0]!r} from Slurm",
            "Expected the name of an option of sbatch: -l constraint=a100 is --constraint=a100.",
        )
    return [f"--{request}" for request in need.requests]


def _check(need: Resources, own: Sequence[str]) -> None:
    if need.gpus % 1:
        raise InputError(
            f"driver SLURM does not support a share of a GPU: --gpus={need.gpus:g}",
            "Request whole GPUs, or shards if the cluster has them: "
            "--gpus=0 --submit-option=--gres=shard:1",
        )
    if need.parallel_environment:
        raise InputError(
            "driver SLURM does not support --pe (parallel_environment)",
            "Leave it out: --slots requests cores of one host.",
        )
    if found := [argument for argument in own if argument.partition("=")[0] in _FORBIDDEN]:
        raise InputError(
            f"driver SLURM does not support the option {found[0]} of sbatch",
            "Each trial is one job on one cluster, found by its name.",
        )


def _given(arguments: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the values of the options ``names``: ``--name=value``, ``--name value``, ``-n``."""
    values = []
    for number, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name in names:
            after = arguments[number + 1 : number + 2]
            values.append(value if equals else "".join(after))
        elif len(argument) > 2 and argument[:2] in names and argument[1] != "-":
            values.append(argument[2:])
    return values


def _time(seconds: float) -> str:
    """Return a duration for sbatch, rounded up to a minute as Slurm does."""
    minutes = max(1, -int(-seconds // 60))
    return f"{minutes // 60}:{minutes % 60:02d}:00"
