"""``sge-jobs status``: list hosts and jobs."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict

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
    queue = Queue()
    hosts, jobs = queue.hosts(), queue.jobs(arguments.user)
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
            str(job.gpus),
            ago(job.since, now),
        )
        for job in jobs
    ]
    return table(("JOB", "NAME", "USER", "STATE", "HOST", "SLOTS", "GPUS", "SINCE"), lines)
