"""What exists of a cluster and costs money now, also while AWS's lists lag."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from starcluster.aws import prices
from starcluster.aws.ec2 import Ec2
from starcluster.aws.instances import LIVE
from starcluster.aws.model import Instance
from starcluster.errors import StarClusterError
from starcluster.launch import plan, wait
from starcluster.launch.claim.claims import Claim
from starcluster.launch.claim.current import current
from starcluster.launch.survey import PRICES_S
from starcluster.model import group_name
from starcluster.threadpool import soon

Progress = Callable[[str, str], None]


def describe_running(
    ec2: Ec2,
    name: str,
    sent: Mapping[str, Instance | None],
    progress: Progress = lambda alias, what: None,
    *,
    record: Claim | None = None,
    ended: Collection[str] = (),
    exists: bool = False,
    makes_group: bool = False,
) -> str:
    """Return the existing instances of cluster ``name``, their cost and the next commands.

    Args:
        sent: What a launch has requested, by alias; None for a request without a response.
        record: What this command has changed. Default: what AWS lists of the last command.
        ended: Ids of instances that AWS was asked to terminate.
        exists: The cluster had instances when the command began.
        makes_group: A security group was requested and not removed; AWS possibly does not list it.
    """
    try:
        claim = record or current(ec2, name, exists=exists)[0]
        other = claim if claim is not None and claim.active else None
        changed = None if other or claim is None or claim.settled else claim
        instances = listed(ec2, name, sent, progress, record=changed, ended=ended)
        has_group = bool(ec2.security_groups(group_name(name)))
    except (StarClusterError, KeyboardInterrupt):
        return f"Instances may be running and cost money: starcluster listclusters {name}"
    if other is not None:
        return f"{_exist(ec2, instances)} and cluster '{name}' is being {other}.\n{_see(name)}"
    if not instances:
        return _describe_group(name, has_group, makes_group)
    return (
        f"{_exist(ec2, instances)}.\n"
        f"Continue: starcluster start -x {name}\n"
        f"Or terminate the cluster: starcluster terminate {name}"
    )


def _describe_group(name: str, listed: bool, requested: bool) -> str:
    if listed:
        left = "only its security group is left. Remove it"
    elif requested:
        left = "and AWS does not list its security group, which can be late. Remove it"
    else:
        return "The cluster has no instances and costs nothing."
    return f"The cluster has no instances, {left}: starcluster terminate {name}"


def _see(name: str) -> str:
    return f"See what runs: starcluster listclusters {name}"


def _exist(ec2: Ec2, instances: Sequence[Instance]) -> str:
    if not instances:
        return "AWS lists no instances,"
    count = len(instances)
    exist = f"{count} instances exist" if count > 1 else "1 instance exists"
    names = ", ".join(instance.alias or instance.id for instance in instances)
    return f"{exist} ({names}): {price_now(ec2, instances)}"


def listed(
    ec2: Ec2,
    name: str,
    sent: Mapping[str, Instance | None],
    progress: Progress,
    *,
    record: Claim | None = None,
    ended: Collection[str] = (),
) -> list[Instance]:
    """Return the instances of a cluster when AWS lists all changes, or after ``LAG_S``."""
    deadline = time.monotonic() + wait.LAG_S
    said = False
    for pause in wait.backoff_delays():
        asked = time.monotonic()
        found = ec2.instances(cluster=name, states=wait.ANY_STATE)
        ids = {instance.id for instance in found}
        there = {instance.alias for instance in found}
        live = [instance for instance in found if instance.state in LIVE]
        unknown = [alias for alias, made in sent.items() if not made and alias not in there]
        # The instances of a spot fleet get their aliases after the launch.
        nameless = sum(not instance.alias for instance in live)
        missing = unknown[nameless:]
        missing += [alias for alias, made in sent.items() if made and made.id not in ids]
        if record:
            ended_now = {each.id for each in found} - {each.id for each in live}
            gone = {alias for alias, made in sent.items() if made and made.id in ended_now}
            left = tuple(alias for alias in record.aliases if alias not in gone)
            record = replace(record, aliases=left)
        late = any(each.id in ended for each in live) or (record and record.lags(found))
        if not (missing or late) or asked > deadline:
            return live + [made for made in sent.values() if made and made.id not in ids]
        if not said:
            text = ", ".join(missing) or "the change"
            progress("", f"waiting up to {wait.LAG_S:g} s for AWS to list {text}")
        said = True
        time.sleep(pause)
    raise AssertionError


def price_now(ec2: Ec2, instances: Sequence[Instance]) -> plan.Cost:
    """Return the most that instances cost now; waits up to ``PRICES_S`` for AWS's price list."""
    types = {instance.type for instance in instances}
    no_prices: dict[str, float] = {}
    on_demand = soon(lambda: prices.on_demand(ec2, types), within_s=PRICES_S, otherwise=no_prices)
    return plan.cost_of(instances, on_demand)
