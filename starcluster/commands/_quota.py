"""Compare a launch with the vCPU quotas of the account."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

import click

from starcluster.aws.ec2 import Ec2
from starcluster.errors import QuotaError
from starcluster.launch import plan

_Kind = tuple[str, str]  # code and name of a quota


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """A quota of the account in vCPUs; ``limit`` is None if AWS does not report it."""

    code: str
    name: str
    wanted: int
    used: int
    limit: float | None

    @property
    def is_short(self) -> bool:
        """Whether the launch does not fit."""
        return self.limit is not None and self.used + self.wanted > self.limit

    def __str__(self) -> str:
        allowed = "is not reported by AWS" if self.limit is None else f"is {self.limit:g}"
        used = f", {self.used} in use" if self.used else ""
        short = ", too low" if self.is_short else ""
        return f"{self.wanted} vCPUs of {self.name}{used}; the quota {allowed}{short}"


def check_quotas(ec2: Ec2, nodes: Sequence[plan.Planned], prepaid: Container[str] = ()) -> None:
    """Print the quotas that ``nodes`` count toward. Raises QuotaError if one is too low."""
    found = quotas(ec2, nodes, prepaid)
    for quota in found:
        click.echo(f"Quota: {quota}")
    if short := [quota for quota in found if quota.is_short]:
        names = " and ".join(f"{quota.name} ({quota.code})" for quota in short)
        raise QuotaError(
            f"the cluster does not fit into the quota in {ec2.region}: {names}",
            "Request a higher quota in the Service Quotas console of AWS, under Amazon EC2, "
            "or start fewer or smaller nodes: -s, -i. Nothing was launched.",
        )


def quotas(ec2: Ec2, nodes: Sequence[plan.Planned], prepaid: Container[str] = ()) -> list[Quota]:
    """Return each quota that ``nodes`` count toward, with what already runs.

    Args:
        prepaid: Instance types in a Capacity Block, which counts toward no quota.
    """
    nodes = [node for node in nodes if node.instance_type not in prepaid]
    found = ec2.instances(states=("pending", "running"))
    running = [instance for instance in found if not instance.prepaid]
    types = {node.instance_type for node in nodes} | {instance.type for instance in running}
    vcpus = {name: facts.vcpus for name, facts in ec2.instance_types(types).items()}
    wanted = _total(((node.instance_type, node.spot) for node in nodes), vcpus)
    used = _total(((instance.type, instance.is_spot) for instance in running), vcpus)
    return [
        Quota(
            code=code,
            name=name,
            wanted=count,
            used=used[code, name],
            limit=ec2.vcpu_quota(code),
        )
        for (code, name), count in wanted.items()
    ]


def _total(kinds: Iterable[tuple[str, bool]], vcpus: dict[str, int]) -> Counter[_Kind]:
    """Return vCPUs by quota of instances, each a type and whether it is a spot instance."""
    found: Counter[_Kind] = Counter()
    for name, spot in kinds:
        quota = plan.quota_of(name, spot=spot)
        if quota and name in vcpus:
            found[quota] += vcpus[name]
    return found
