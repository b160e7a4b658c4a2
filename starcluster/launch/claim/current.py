"""The instances of a cluster after its last change, also while AWS's lists lag."""

from __future__ import annotations

import time
from collections.abc import Sequence

from starcluster.aws.ec2 import Ec2
from starcluster.aws.instances import LIVE
from starcluster.aws.model import Instance
from starcluster.launch import wait
from starcluster.launch.claim.claims import POLL_S, Claim, claim_of
from starcluster.logger import log
from starcluster.model import group_name

_LAUNCHED = "aws:ec2launchtemplate:id"
"""Tag that AWS gives to an instance of a launch template, such as a claim."""


def current(ec2: Ec2, cluster: str, *, exists: bool = False) -> tuple[Claim | None, list[Instance]]:
    """Return the claim and the instances of a cluster when AWS lists all, or after ``LAG_S``.

    A cluster with instances has a claim. While AWS lists only one of them, or only their security
    group, the other is possibly not listed yet.

    Args:
        exists: The cluster has instances, even if AWS lists nothing of it.
    """
    deadline = time.monotonic() + wait.LAG_S
    said = False
    while True:
        asked = time.monotonic()
        claim = claim_of(ec2, cluster)  # first: once it is settled, the next list has its change
        found = ec2.instances(cluster=cluster)
        if claim is not None and (found or not claim.settled):
            break
        if not (exists or _is_partial(ec2, cluster, claim, found)) or asked > deadline:
            return claim, found
        said = said or _say(cluster)
        time.sleep(POLL_S)
    if claim.settled or (claim.active and claim.mine) or not claim.lags(found):
        return claim, found
    return claim, settle(ec2, claim)


def _is_partial(ec2: Ec2, cluster: str, claim: Claim | None, found: Sequence[Instance]) -> bool:
    """Return whether AWS lists a part of a cluster and possibly not yet the rest of it."""
    if found:
        return claim is None and any(_LAUNCHED in instance.tags for instance in found)
    return claim is not None or bool(ec2.security_groups(group_name(cluster)))


def relist(ec2: Ec2, cluster: str) -> list[Instance]:
    """Return the instances of a cluster without a claim, ``LAG_S`` later if it had one."""
    deadline = time.monotonic() + wait.LAG_S
    said = False
    while True:
        asked = time.monotonic()
        found = ec2.instances(cluster=cluster)
        if not _is_partial(ec2, cluster, None, found) or asked > deadline:
            return found
        said = said or _say(cluster)
        time.sleep(POLL_S)


def settle(ec2: Ec2, claim: Claim) -> list[Instance]:
    """Return the instances of a cluster, when AWS lists the whole change or ``LAG_S`` passed."""
    deadline = time.monotonic() + wait.LAG_S - (claim.done_s or 0.0)
    said = False
    while True:
        asked = time.monotonic()  # a slow request has the list from when it was made
        found = ec2.instances(cluster=claim.cluster, states=wait.ANY_STATE)
        if not claim.lags(found) or asked > deadline:
            return [instance for instance in found if instance.state in LIVE]
        said = said or _say(claim.cluster)
        time.sleep(POLL_S)
        newest = claim_of(ec2, claim.cluster)
        if newest is not None and newest.id == claim.id:
            claim = newest  # AWS lists the end of the change


def _say(cluster: str) -> bool:
    log.info("AWS lists %s only in part; waiting up to %g s for the rest", cluster, wait.LAG_S)
    return True
