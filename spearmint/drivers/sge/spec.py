"""Describe a trial as a Grid Engine job, and count the slots that it can use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import sge_jobs
from sge_jobs import Host, JobSpec, job_name
from spearmint.drivers.queue import SubmitSpec
from spearmint.errors import InputError
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
        resources=_sge_resources(need, spec.avoid),
        environment=spec.environment,
        modules=need.modules,
        venv=need.venv,
        setup=need.setup,
    )


def _sge_resources(need: Resources, avoid: Sequence[str]) -> sge_jobs.Resources:
    """Convert ``need``: fields that sge_jobs has by the same name, and the rest as qsub options."""
    need = _on_nodes(replace(need, requests=_avoiding(need.requests, avoid)))
    shared = {field.name: getattr(need, field.name) for field in fields(sge_jobs.Resources)}
    options = (*submit_arguments(need, "SGE"), *need.options)
    return sge_jobs.Resources(**{**shared, "options": options})


def _on_nodes(need: Resources) -> Resources:
    """Return ``need`` with the slots of all hosts, and the GPUs of a slot if there are several.

    Raises:
        InputError: There is no parallel environment, or a slot would have a share of a GPU.
    """
    if need.nodes == 1:
        return need
    if not need.parallel_environment:
        raise InputError(
            f"--nodes={need.nodes} needs a parallel environment of Grid Engine",
            f"Add --pe=NAME: one with control_slaves TRUE and allocation_rule {need.slots}.",
        )
    if 0 < need.gpus < 1:
        raise InputError(
            f"a trial on several hosts cannot have a share of a GPU: --gpus={need.gpus:g}",
            "Request whole GPUs, e.g. --gpus=1, or one host: --nodes=1.",
        )
    if need.gpus % need.slots:
        raise InputError(
            f"cannot divide --gpus={need.gpus:g} of each host by --slots={need.slots}",
            "With --nodes, Grid Engine counts GPUs for each slot: use --slots=1, or as many slots "
            "as GPUs.",
        )
    return replace(need, slots=need.nodes * need.slots, gpus=need.gpus / need.slots)


def require_gpus_of_each_slot(queue: sge_jobs.Queue, job: JobSpec) -> None:
    """Raise InputError if the cell counts the GPUs of a job once, all on its first host."""
    if job.resources.gpus and queue.consumable("gpu") == "JOB":
        raise InputError(
            "the cell counts gpu for each job (JOB), so only the first of several hosts of a "
            "trial would get GPUs",
            "As a manager of the cell: qconf -sc | sed '/^gpu /s/ JOB / YES /' > complexes && "
            "qconf -Mc complexes    Then -l gpu=N of each job is for each of its slots. Or use one "
            "host: --nodes=1",
        )


def _avoiding(requests: tuple[str, ...], avoid: Sequence[str]) -> tuple[str, ...]:
    """Return ``requests`` with one for all hosts except ``avoid``; the user's own one holds too."""
    if not avoid:
        return requests
    items = [item for request in requests for item in request.split(",")]
    own = [item for item in items if item.partition("=")[0] in ("h", "hostname")]
    others = [item for item in items if item not in own]
    hosts = f"!({'|'.join(avoid)})" if len(avoid) > 1 else f"!{avoid[0]}"
    wanted = "".join(f"({item.partition('=')[2]})&" for item in own[-1:])
    return (*others, f"h={wanted}{hosts}")


def slots_of(host: Host, queue: str) -> int:
    """Return the slots of a host, only those in ``queue`` if it is not empty (as in ``-q``)."""
    names = {name.partition("@")[0] for name in queue.split(",") if name}
    if not names:
        return host.slots
    return sum(
        instance.slots for instance in host.queues if instance.name.partition("@")[0] in names
    )
