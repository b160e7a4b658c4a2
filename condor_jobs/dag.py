"""Write the files of a DAG, and submit it to DAGMan."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path

from condor_jobs.chain import MODEL, Chain
from condor_jobs.commands import ask
from condor_jobs.description import Jobs, node_files
from condor_jobs.errors import CondorJobsError, InputError, SubmitError
from condor_jobs.text import require_plain

DAG = "chains.dag"
"""Name of the DAG in its directory."""
_ATTRIBUTE = "CondorJobsDag"


def dag_files(chains: Iterable[Chain], directory: Path, jobs: Jobs) -> dict[str, str]:
    """Return the files of a DAG by their names in ``directory``."""
    require_plain(directory)
    steps = ["search", "retrain", *(["evaluate"] if jobs.evaluate else []), "publish"]
    lines, files, categories = [], dict[str, str](), dict[str, str]()
    for chain in chains:
        for name, text in node_files(chain, directory / chain.name, jobs).items():
            files[f"{chain.name}/{name}"] = text
        nodes = [f"{step}-{chain.name}" for step in steps]
        for step, node in zip(steps, nodes, strict=True):
            lines.append(f"JOB {node} {chain.name}/{step}.sub")
        lines += [f"PARENT {a} CHILD {b}" for a, b in pairwise(nodes)]
        # One process at a time searches a directory, for all of its regions.
        category = categories.setdefault(chain.directory, f"directory{len(categories) + 1}")
        lines.append(f"CATEGORY {nodes[0]} {category}")
    lines += [f"MAXJOBS {category} 1" for category in categories.values()]
    return {DAG: "".join(f"{line}\n" for line in lines), **files}


def write_files(files: Mapping[str, str], directory: Path) -> None:
    """Write the files of a DAG; models of earlier runs stay."""
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.new")
        part.write_text(text)
        part.chmod(0o755 if path.suffix == ".sh" else 0o644)
        part.replace(path)
        if path.parent != directory:
            (path.parent / MODEL).mkdir(exist_ok=True)


def submit_dag(files: Mapping[str, str], directory: Path, *, restart: bool) -> str:
    """Write and submit a DAG, or continue it where it failed; return what to tell the user.

    Args:
        files: As by :func:`dag_files`.
        directory: Where the DAG is.
        restart: Whether to run all nodes again.

    Raises:
        SubmitError: HTCondor refused it.
        CondorJobsError: The DAG runs already.
        InputError: An unfinished DAG in the directory has other nodes.
    """
    path = directory / DAG
    if number := _running(path):
        raise CondorJobsError(
            f"{path} is running as job {number}", f"See: condor_q -nobatch {number}"
        )
    continues = not restart and _is_unfinished(path)
    if continues and path.read_text() != files[DAG]:
        raise InputError(
            f"{path} is unfinished, and had other directories, regions or steps",
            "Name the same ones to continue it, choose another --work, or run all with --restart.",
        )
    write_files(files, directory)
    argv = ["condor_submit_dag", "-batch-name", directory.name]
    argv += ["-append", f'+{_ATTRIBUTE} = "{path}"', *([] if continues else ["-force"]), DAG]
    answer = ask(argv, cwd=directory)
    if "submitted to cluster" not in answer:
        raise SubmitError(f"condor_submit_dag refused the DAG: {' '.join(answer.split())}")
    number = answer.partition("submitted to cluster")[2].split()[0].rstrip(".")
    what = "Continued" if continues else "Submitted"
    return f"{what} as job {number}. See: condor_q -nobatch -dag {number}"


def _running(path: Path) -> str:
    """Return the number of the DAG's job; empty if it does not run."""
    mine = f'{_ATTRIBUTE} =?= "{path}"'
    return ask(["condor_q", "-constraint", mine, "-autoformat", "ClusterId"]).strip()


def _is_unfinished(path: Path) -> bool:
    """Return whether the DAG's last run left a rescue file, by which it continues."""
    if not list(path.parent.glob(f"{path.name}.rescue*")):
        return False
    try:
        metrics = json.loads(path.with_name(f"{path.name}.metrics").read_text())
    except (OSError, ValueError):
        return True
    return bool(metrics.get("exitcode"))
