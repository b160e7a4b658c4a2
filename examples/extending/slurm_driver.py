"""Trials as jobs of Slurm: ``spearmint --driver=slurm_driver:SlurmDriver config.pb``."""

import shlex
import subprocess

from spearmint.drivers import Dialect, EndedRun, Queue, QueueDriver, QueueJob, QueueJobState
from spearmint.errors import DriverError, DriverUnreachable

STATES = {
    "PENDING": QueueJobState.PENDING,
    "SUSPENDED": QueueJobState.SUSPENDED,
    "COMPLETING": QueueJobState.ENDING,
}  # all others of squeue run


def run(*argv, text="", inherit=()):
    """Return what a command of Slurm prints."""
    try:
        done = subprocess.run(
            argv, input=text, pass_fds=tuple(inherit), capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DriverUnreachable(f"{argv[0]}: {error}") from error
    if done.returncode and "contact slurm controller" in done.stderr:
        raise DriverUnreachable(done.stderr.strip())
    if done.returncode:
        raise DriverError(f"{argv[0]}: {done.stderr.strip()}")
    return done.stdout


def rows(*argv):
    """Return the columns of each line that a command of Slurm prints."""
    return [line.split("|") for line in run(*argv).splitlines()]


class Slurm(Queue):
    """The calls of a queue by sbatch, squeue, scancel and sacct; a job's name is its token."""

    def __init__(self, settings):
        """Make it; nothing is asked."""

    def submit(self, spec, *, inherit):
        """Run sbatch."""
        options = [
            f"--job-name={spec.token}",
            f"--chdir={spec.directory}",
            f"--output={spec.output}",
            "--open-mode=append",
            f"--gpus={spec.resources.gpus}",
            f"--cpus-per-task={spec.resources.slots}",
        ]
        lines = [f"export {name}={shlex.quote(text)}" for name, text in spec.environment.items()]
        script = "\n".join(["#!/bin/bash", *lines, f"exec {shlex.join(spec.argv)}", ""])
        answer = run("sbatch", "--parsable", *options, text=script, inherit=inherit)
        return answer.partition(";")[0].strip()

    def jobs(self):
        """Run squeue."""
        return [
            QueueJob(id=id, token=token, state=STATES.get(state, QueueJobState.RUNNING), text=state)
            for id, token, state in rows("squeue", "--me", "--noheader", "--format=%i|%j|%T")
        ]

    def cancel(self, ids):
        """Run scancel."""
        run("scancel", *ids)

    def accounting(self, id):
        """Run sacct, whose exit codes are ``STATUS:SIGNAL``."""
        columns = "--format=NodeList,ElapsedRaw,ExitCode"
        found = rows("sacct", "-X", "--noheader", "--parsable2", "--jobs", id, columns)
        return [
            EndedRun(
                host=host,
                seconds=float(seconds or 0),
                exit_status=int(code.partition(":")[0]),
                signal=int(code.partition(":")[2]),
            )
            for host, seconds, code in found
        ]


class SlurmDriver(QueueDriver):
    """Run trials as jobs of Slurm."""

    queue_type = Slurm
    dialect = Dialect(
        queue="Slurm", job_id_variable="SLURM_JOB_ID", accounting="sacct", cancel="scancel {id}"
    )
