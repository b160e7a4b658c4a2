"""Record when the nodes of a cluster run and what they cost."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import Instance, SpotRequest
from starcluster.errors import AwsError, SshError
from starcluster.launch.wait import ANY_STATE
from starcluster.logger import log
from starcluster.money.bill_prices import new_on_demand, with_prices
from starcluster.money.bill_store import BillStore
from starcluster.money.observe import life_of, lives_of, merged, observed
from starcluster.money.published import publish, read_published
from starcluster.node.shell import Shell
from starmint.bill import Bill

_ID = re.compile(r"i-[0-9a-z]+")
_ENDED = ("shutting-down", "terminated")
_ANY_REQUEST = ("open", "active", "closed", "cancelled", "failed", "disabled")
_A_REQUEST = 100  # AWS allows 200 values of a filter


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The bill of a cluster, and what is missing.

    Attributes:
        instances: The instances of the cluster that AWS lists, also terminated ones.
        errors: Of prices, and of the record on the master.
    """

    bill: Bill
    instances: tuple[Instance, ...]
    errors: tuple[AwsError | SshError, ...] = ()


def record(
    ec2: Ec2,
    cluster: str,
    *,
    ssh: Shell | None = None,
    store: BillStore | None = None,
    thorough: bool = False,
    now: datetime | None = None,
) -> Recorded | None:
    """Look at the instances of a cluster and record them; return the bill, None without any.

    AWS lists a terminated instance for about an hour. Other clusters of the same name that have
    ended are recorded too.

    Args:
        ssh: Connection to the master, which also keeps the record, for ``spearmint`` and for
            commands on other machines; None if it is not reachable.
        thorough: Also ask for spot prices of nodes that ended long ago.

    Raises:
        AwsError: AWS does not list the instances.
        ClusterError: A record on this machine is damaged.
    """
    store = store or BillStore(ec2.region, cluster)
    now = now or datetime.now(UTC)
    instances = with_ends(ec2, ec2.instances(cluster=cluster, states=ANY_STATE))
    bills = store.load()
    errors: list[AwsError | SshError] = []
    try:
        _add_published(bills, cluster, ssh)
    except SshError as error:
        ssh = None
        errors.append(error)
    groups = lives_of(bills, instances)
    if not groups:
        return None
    ordered = sorted(groups, key=lambda life: _start(bills, life, groups[life]))
    newest, seen = ordered[-1], dict[str, Bill]()
    for life in ordered:
        old = bills.get(life) or Bill(cluster=cluster, region=ec2.region, updated=now)
        if life == newest or groups[life] or any(run.runs for run in old.runs):
            seen[life] = observed(old, groups[life], now)
    on_demand, missing = new_on_demand(ec2, seen.values(), now)
    on_demand += [price for bill in seen.values() for price in bill.prices if not price.zone]
    errors += missing
    for life, bill in seen.items():
        whole = thorough and life == newest
        priced, missing = with_prices(ec2, bill, now, on_demand, thorough=whole)
        errors += missing
        seen[life] = store.save(life, priced)
    if ssh is not None:
        publish(ssh, seen[newest])
    return Recorded(bill=seen[newest], instances=tuple(groups[newest]), errors=tuple(errors))


def _add_published(bills: dict[str, Bill], cluster: str, ssh: Shell | None) -> None:
    """Add the record on the master to those of this machine. Raises SshError."""
    published = read_published(ssh) if ssh is not None else None
    if published is None or published.cluster != cluster:
        return
    life = life_of(published)
    if _ID.fullmatch(life):  # it becomes the name of a file
        bills[life] = merged(bills[life], published) if life in bills else published


def _start(bills: dict[str, Bill], life: str, group: Sequence[Instance]) -> datetime:
    recorded = [run.start for run in bills[life].runs if run.id == life] if life in bills else []
    listed = [each.launched for each in group if each.id == life and each.launched]
    return min([*recorded, *listed], default=datetime.min.replace(tzinfo=UTC))


def with_ends(ec2: Ec2, instances: Sequence[Instance]) -> list[Instance]:
    """Return instances with the ends that only their spot requests report."""
    ended = [
        each.spot_request_id
        for each in instances
        if each.spot_request_id and each.ended is None and each.state in _ENDED
    ]
    ends: dict[str, SpotRequest] = {}
    try:
        for start in range(0, len(ended), _A_REQUEST):
            ids = ended[start : start + _A_REQUEST]
            ends |= {each.id: each for each in ec2.spot_requests(_ANY_REQUEST, ids=ids)}
    except AwsError as error:  # then the end is known to some minutes only
        log.debug("cannot list spot requests: %s", error.what)
    return [_with_end(each, ends.get(each.spot_request_id)) for each in instances]


def _with_end(instance: Instance, request: SpotRequest | None) -> Instance:
    if request is None or not request.status.startswith("instance-terminated"):
        return instance
    interrupted = request.status != "instance-terminated-by-user"
    return replace(instance, ended=request.changed, interrupted=instance.interrupted or interrupted)
