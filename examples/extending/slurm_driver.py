"""Run trials as Slurm jobs: ``spearmint --driver=slurm_driver:SlurmDriver config.pb``."""

import shlex
import subprocess

from spearmint.drivers import Dialect, EndedRun, Queue, QueueDriver, QueueJob, QueueJobState
from spearmint.errors import DriverError, DriverUnreachable

STATES = {
    "PENDING": QueueJobState.PENDING,
    "SUSPENDED": QueueJobState.SUSPENDED,
    "COMPLETING": QueueJobState.ENDING,
}  # all other states of squeue count as running


def run(*argv, text="", inherit=()):
    """Run a command of Slurm and return its output."""
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
    """Run a command of Slurm and return the columns of each output line."""
    return [line.split("|") for line in run(*argv).splitlines()]


class Slurm(Queue):
    """Implement a queue by sbatch, squeue, scancel and sacct; the job's name is the token."""

    def __init__(self, settings):
        """Create the queue without a call of Slurm."""

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
        """Run sacct; its exit codes have the form ``STATUS:SIGNAL``."""
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
    """Run trials as Slurm jobs."""

    queue_type = Slurm
    dialect = Dialect(
        queue="Slurm", job_id_variable="SLURM_JOB_ID", accounting="sacct", cancel="scancel {id}"
    )
