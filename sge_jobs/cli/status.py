"""``sge-jobs status``: list hosts and jobs."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from fnmatch import fnmatchcase

from sge_jobs.cell.rotation import fault_of
from sge_jobs.cli.help import first_group
from sge_jobs.cli.output import ago, say, say_json, table
from sge_jobs.model import Host, QueuedJob
from sge_jobs.queue.queue import Queue

HELP = """\
Show the hosts with their slots and GPUs, and the queued and running jobs.

Examples:
  sge-jobs status
  sge-jobs status --user=alice --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = first_group(parser).add_argument
    add("-u", "--user", default="*", help="Show only the jobs of this user. Default: all users.")
    add("--json", action="store_true", help="Print JSON.")


def run(arguments: argparse.Namespace) -> int:
    """Print hosts and jobs."""
    hosts, all_jobs = Queue().snapshot()
    jobs = [job for job in all_jobs if fnmatchcase(job.owner, arguments.user)]
    if arguments.json:
        listed = [{**asdict(job), "status": job.status.value} for job in jobs]
        say_json({"hosts": [asdict(host) for host in hosts], "jobs": listed})
        return 0
    say(_hosts(hosts))
    say()
    say(_jobs(jobs, time.time()) if jobs else "No jobs.")
    return 0


def _hosts(hosts: list[Host]) -> str:
    lines = [
        (
            host.name,
            f"{host.slots_used}/{host.slots}",
            "-" if host.gpus is None else f"{host.gpus_used}/{host.gpus}",
            str(host.cores or "-"),
            "-" if host.load is None else f"{host.load:.2f}",
            _host_state(host),
        )
        for host in hosts
    ]
    return table(("HOST", "SLOTS", "GPUS", "CORES", "LOAD", "STATE"), lines)


def _host_state(host: Host) -> str:
    states = [f"{queue.name} {queue.state}" for queue in host.queues if queue.state]
    if not host.reachable:
        states.insert(0, "does not respond")
    elif (fault := fault_of(host)) is not None:
        states.insert(0, f"{'out of the rotation' if fault.times else 'faulty'}: {fault.reason}")
    return ", ".join(states) or "ok"


def _jobs(jobs: list[QueuedJob], now: float) -> str:
    lines = [
        (
            f"{job.id}.{job.task}" if job.task else job.id,
            job.name,
            job.owner,
            f"{job.status.value} ({job.state})",
            job.host or "-",
            str(job.slots),
            f"{job.gpus:g}",
            ago(job.since, now),
        )
        for job in jobs
    ]
    return table(("JOB", "NAME", "USER", "STATE", "HOST", "SLOTS", "GPUS", "SINCE"), lines)
