"""Submit descriptions and scripts of the nodes of a chain."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from condor_jobs.chain import BEST, EVALUATION, MODEL, Chain
from condor_jobs.text import quoted, require_plain

_STATE = {"jobs", "output", "regions", "report", "trace.csv", "best_job_and_result.txt"}
_RESTARTS = 20
# A program that was killed, by a signal or through another one (128 + N), is restarted.
_REMOVE = f"(ExitBySignal =?= False && ExitCode < 128) || NumJobStarts >= {_RESTARTS}"

_SCRIPT = """\
#!/bin/sh
# Runs in the directory of config.pb, or in a copy of it on a host that does not share it.
set -eu
mkdir -p {model}
export CONDOR_JOBS_MODEL="$PWD/{model}" CONDOR_JOBS_BEST="$PWD/{best}"
export CONDOR_JOBS_REGION={region} SPEARMINT_REGION={region}
export PATH={path}
[ "$PWD" != {folder} ] || cd -- {directory}
exec {command}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """The jobs of a chain that the user defines.

    Attributes:
        retrain: Command that writes a model to ``$CONDOR_JOBS_MODEL``.
        evaluate: Command that fails if the model must not be published; empty for none.
        gpus: GPUs of each of them.
        requests: Further submit commands by name.
    """

    retrain: Sequence[str]
    evaluate: Sequence[str]
    gpus: int
    requests: Mapping[str, str]


def manager_job(arguments: Sequence[str], folder: Path, name: str) -> str:
    """Return the description of a job that runs a module of this package on this host.

    It survives hold, release, a restart of the schedd and ``kill -9``: it is restarted.
    """
    found = {
        name: os.environ[name] for name in ("HOME", "PATH", "PYTHONPATH") if name in os.environ
    }
    environment = (name + "=" + value for name, value in found.items())
    return _description(
        {
            "universe": "local",
            "executable": require_plain(Path(sys.executable)),
            "arguments": quoted("-P", "-m", "condor_jobs.node", *arguments),
            "environment": quoted(*environment),
            "initialdir": require_plain(folder),
            "output": "/dev/null",
            "error": "/dev/null",
            "batch_name": name,
            "on_exit_remove": _REMOVE,
        }
    )


def node_files(chain: Chain, folder: Path, jobs: Jobs) -> dict[str, str]:
    """Return the files of a chain by their names in its folder."""
    files = {"chain.json": chain.text()}
    for name in ("search", "publish"):
        files[f"{name}.sub"] = manager_job((name, str(folder)), folder, f"{name} {chain.name}")
    commands = {"retrain": jobs.retrain, "evaluate": jobs.evaluate}
    for name, command in commands.items():
        if command:
            files[f"{name}.sh"] = _script(chain, folder, command)
            files[f"{name}.sub"] = _job(name, chain, folder, jobs)
    return files


def _job(name: str, chain: Chain, folder: Path, jobs: Jobs) -> str:
    is_retrain = name == "retrain"
    inputs = [BEST, MODEL, *_inputs(Path(chain.directory))]
    commands = {
        "universe": "vanilla",
        "executable": require_plain(folder / f"{name}.sh"),
        "initialdir": require_plain(folder),
        "output": f"{name}.out" if is_retrain else EVALUATION,
        "error": f"{name}.err",
        "should_transfer_files": "IF_NEEDED",
        "when_to_transfer_output": "ON_EXIT",
        "transfer_input_files": ", ".join(inputs),
        "transfer_output_files": MODEL if is_retrain else '""',
        "batch_name": f"{name} {chain.name}",
    }
    if jobs.gpus:
        commands["request_gpus"] = str(jobs.gpus)
    return _description({**commands, **jobs.requests})


def _inputs(directory: Path) -> list[str]:
    """Return the user's files and folders in a directory, without those of the search."""
    return [
        require_plain(path)
        for path in sorted(directory.iterdir())
        if path.name not in _STATE and not path.name.startswith((".", "__", "spearmint.db"))
    ]


def _script(chain: Chain, folder: Path, command: Sequence[str]) -> str:
    return _SCRIPT.format(
        model=MODEL,
        best=BEST,
        region=shlex.quote(chain.region),
        path=shlex.quote(os.environ.get("PATH", os.defpath)),
        folder=shlex.quote(str(folder)),
        directory=shlex.quote(chain.directory),
        command=shlex.join(command),
    )


def _description(commands: Mapping[str, str]) -> str:
    return "".join(f"{name} = {value}\n" for name, value in commands.items()) + "queue\n"
