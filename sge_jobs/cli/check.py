"""``sge-jobs check``: list the problems of a cell."""

from __future__ import annotations

import argparse
import os
import pwd
import socket
from dataclasses import asdict
from pathlib import Path

from sge_jobs.cell.diagnosis import Machine, cell_problems, manager_problems, name_problems
from sge_jobs.cell.packages import explain
from sge_jobs.cell.problem import Problem
from sge_jobs.cell.qconf import Qconf
from sge_jobs.cell.qconf_text import cluster_default
from sge_jobs.cell.rotation import rotation_problems
from sge_jobs.cell.stuck_jobs import may_be_stuck, stuck_problems
from sge_jobs.cli.help import first_group
from sge_jobs.cli.output import say, say_json
from sge_jobs.errors import SgeJobsError
from sge_jobs.queue.queue import Queue

HELP = """\
List the problems of this cell and how to fix each of them.

A cell is one installation of Grid Engine: a master, its queues and its hosts. The command checks
this machine, the hosts, the queues, the GPU setup and your jobs that cannot start; for a manager of
the cell, the jobs of all users. It exits with 0 if there is no problem, otherwise with 1.

Examples:
  sge-jobs check
  sge-jobs check --queue=gpu.q --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = first_group(parser).add_argument
    add("-q", "--queue", default="all.q", help="Check the GPU setup of this queue. Default: all.q.")
    add("--json", action="store_true", help="Print JSON.")


def run(arguments: argparse.Namespace) -> int:
    """Print the problems; return 1 if there are any."""
    problems = find_problems(arguments.queue, this_machine())
    if arguments.json:
        say_json([asdict(problem) for problem in problems])
    for problem in [] if arguments.json else problems:
        say(f"{problem.what}\n    {problem.fix}")
    if not problems and not arguments.json:
        say("No problems found.")
    return int(bool(problems))


def find_problems(queue_name: str, machine: Machine) -> list[Problem]:
    """Return the problems of the cell as seen from ``machine``."""
    qconf, queue = Qconf(), Queue()
    problems = list(name_problems(machine))
    try:
        hosts, jobs = queue.snapshot()
        cell = qconf.overview(hosts)
        submit_hosts = qconf.submit_hosts()
        user = pwd.getpwuid(os.geteuid()).pw_name
        managers = qconf.managers()
        shows_all = user in managers
        stuck = [job for job in jobs if may_be_stuck(job) and (shows_all or job.owner == user)]
        starts = queue.failed_starts(dict.fromkeys(job.id for job in stuck))
    except SgeJobsError as error:
        found = explain(error)
        return [Problem(what=found.what, fix=found.fix), *problems]
    problems += manager_problems(managers, {job.owner for job in jobs})
    problems += cell_problems(
        cell, hosts, queue=queue_name, submit_hosts=submit_hosts, machine=machine
    )
    starter = cluster_default(cell.queues.get(queue_name, {}).get("starter_method", "gpu-starter"))
    return [*problems, *rotation_problems(hosts, starter), *stuck_problems(stuck, starts)]


def this_machine() -> Machine:
    """Return the name, addresses, hosts file and user ID of this machine."""
    name = socket.gethostname()
    try:
        found = socket.getaddrinfo(name, None, family=socket.AF_INET)
    except OSError:
        found = []
    try:
        hosts_file = Path("/etc/hosts").read_text(encoding="utf-8", errors="replace")
    except OSError:
        hosts_file = ""
    addresses = tuple(dict.fromkeys(str(entry[4][0]) for entry in found))
    return Machine(name=name, addresses=addresses, hosts_file=hosts_file, uid=os.geteuid())
