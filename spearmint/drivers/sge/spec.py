"""Describe a trial as a Grid Engine job, and count the slots that it can use."""

from __future__ import annotations

from dataclasses import fields

import sge_jobs
from sge_jobs import Host, JobSpec, job_name
from spearmint.drivers.queue import SubmitSpec
from spearmint.resources import Resources, submit_arguments

_NAME_LENGTH = 80


def job_spec(spec: SubmitSpec) -> JobSpec:
    """Return the job for sge_jobs; its name ends with the token."""
    need = spec.resources
    return JobSpec(
        name=f"{job_name(spec.label)[:_NAME_LENGTH]}-{spec.token}",
        argv=spec.argv,
        directory=spec.directory,
        log=spec.output,
        resources=_sge_resources(need),
        environment=spec.environment,
        modules=need.modules,
        venv=need.venv,
        setup=need.setup,
    )


def _sge_resources(need: Resources) -> sge_jobs.Resources:
    """Convert ``need``: fields that sge_jobs has by the same name, and the rest as qsub options."""
    shared = {field.name: getattr(need, field.name) for field in fields(sge_jobs.Resources)}
    options = (*submit_arguments(need, "SGE"), *need.options)
    return sge_jobs.Resources(**{**shared, "options": options})


def slots_of(host: Host, queue: str) -> int:
    """Return the slots of a host, only those in ``queue`` if it is not empty (as in ``-q``)."""
    names = {name.partition("@")[0] for name in queue.split(",") if name}
    if not names:
        return host.slots
    return sum(
        instance.slots for instance in host.queues if instance.name.partition("@")[0] in names
    )
