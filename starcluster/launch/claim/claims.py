"""The claim of a cluster: one command at a time changes its instances, and all others see which.

A claim is a launch template with the name of the cluster. AWS creates a name only once, so of two
commands one gets the claim. Instances are launched with the template: once a claim is deleted, its
command cannot launch, however long it was suspended. The tags tell who launches which nodes. After
the command they tell which instances exist, and in which state, while AWS's lists lag.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from starcluster.aws.aliases import unpacked
from starcluster.aws.ec2 import Ec2
from starcluster.aws.instances import LIVE
from starcluster.aws.model import Instance, LaunchTemplate
from starcluster.errors import NotTaken
from starcluster.launch import wait
from starcluster.launch.claim.process import has_ended, this_process
from starcluster.model import TAG_ALIASES, TAG_CLUSTER, group_name

STALE_S = 300.0
"""Age in seconds after which another command takes over a claim that is not done."""
TERMINATE = "terminate"
DELETED: set[str] = set()
"""Ids of the claims that this process has deleted; AWS can still list them."""
POLL_S = 1.0
TAG_BY = "starcluster:by"
TAG_COMMAND = "starcluster:command"
TAG_PROCESS = "starcluster:process"
TAG_DONE = "starcluster:done"  # seconds from the creation of the claim to the end of the change
TAG_STATE = "starcluster:state"
RUNNING, STOPPED = "running", "stopped"
_STATES = {RUNNING: ("pending", "running"), STOPPED: ("stopping", "stopped")}
_DOING = {
    "start": "started",
    "start -x": "started",
    "restart": "restarted",
    "stop": "stopped",
    "addnode": "extended",
    "removenode": "reduced",
    TERMINATE: "terminated",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The claim of a cluster as AWS lists it.

    Attributes:
        by: User, host and process of the command.
        aliases: The nodes of the cluster with those that the command launches; when it is done,
            those that exist.
        state: ``RUNNING`` or ``STOPPED`` if the command brought all nodes into this state.
        done_s: Seconds since the end of the change; None until then.
        more: The user's tags.
    """

    id: str
    cluster: str
    by: str
    command: str
    process: str
    since: datetime
    age_s: float
    aliases: tuple[str, ...] = ()
    state: str = ""
    done_s: float | None = None
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def mine(self) -> bool:
        """Whether a command of this process holds it."""
        return self.process == this_process()[0]

    @property
    def active(self) -> bool:
        """Whether its command can still change instances."""
        return self.done_s is None and self.age_s < STALE_S and not has_ended(self.process)

    @property
    def settled(self) -> bool:
        """Whether AWS lists the change, because enough time has passed."""
        return not self.active and self.settled_in(0.0)

    def settled_in(self, seconds: float) -> bool:
        """Return whether AWS lists the change after ``seconds`` if the command has ended.

        A command that was killed can have made its last request until its claim was stale.
        """
        if self.done_s is None:
            return seconds > wait.LAG_S or self.age_s + seconds > STALE_S + wait.LAG_S
        return self.done_s + seconds > wait.LAG_S

    def missing(self, found: Iterable[Instance]) -> list[str]:
        """Return the aliases that are not among ``found``; instances without alias count too."""
        there = [instance.alias for instance in found]
        left = [alias for alias in self.aliases if alias not in there]
        return left[: max(len(left) - there.count(""), 0)]

    def lags(self, found: Iterable[Instance]) -> bool:
        """Return whether ``found`` is possibly a list without this change."""
        if self.active and self.command == TERMINATE:
            return False  # it changes at any time
        if self.done_s is None and not self.active and self.age_s <= wait.LAG_S:
            return True  # its command was killed, or AWS does not list its end yet
        live = [instance for instance in found if instance.state in LIVE]
        if self.missing(live):
            return True
        known = [each for each in live if each.alias in self.aliases]
        if self.state and any(each.state not in _STATES[self.state] for each in known):
            return True
        removed = self.done_s is not None and bool(self.aliases)
        return removed and len(known) < sum(bool(each.alias) for each in live)

    def __str__(self) -> str:
        when = f"{self.since:%H:%M:%S} UTC ({self.age_s:.0f} s ago)"
        return f"{_DOING.get(self.command, 'changed')} by {self.by} since {when}"


def claim_name(cluster: str) -> str:
    """Return the name of the launch template that is the claim of ``cluster``."""
    return f"starcluster/{cluster}"


def all_claims(ec2: Ec2, cluster: str = "*") -> dict[str, Claim]:
    """Return the claims of the region by cluster."""
    found = [_claim(each) for each in ec2.templates(cluster) if each.id not in DELETED]
    # AWS can still list the last claim, which is deleted.
    return {claim.cluster: claim for claim in sorted(found, key=lambda claim: claim.since)}


def claim_of(ec2: Ec2, cluster: str) -> Claim | None:
    """Return the claim of ``cluster``; None without one, or if AWS does not list it yet."""
    return all_claims(ec2, cluster).get(cluster)


def _claim(template: LaunchTemplate) -> Claim:
    tags = template.tags
    done = tags.get(TAG_DONE, "")
    return Claim(
        id=template.id,
        cluster=tags.get(TAG_CLUSTER, ""),
        by=tags.get(TAG_BY, "another command"),
        command=tags.get(TAG_COMMAND, ""),
        process=tags.get(TAG_PROCESS, ""),
        since=template.created,
        age_s=template.age_s,
        aliases=tuple(unpacked(tags.get(TAG_ALIASES, ""))),
        state=tags.get(TAG_STATE, ""),
        done_s=max(template.age_s - float(done), 0.0) if done else None,
        more={key: tags[key] for key in tags if not key.startswith("starcluster:")},
    )


def existing(ec2: Ec2, cluster: str) -> list[Instance]:
    """Return the instances of a cluster, without those that AWS still lists after their end.

    A cluster with instances has a security group, because AWS deletes none that is in use.
    """
    deadline = time.monotonic() + wait.LAG_S
    while True:
        asked = time.monotonic()
        found = ec2.instances(cluster=cluster)
        if not found or ec2.security_groups(group_name(cluster)) or asked > deadline:
            return found
        time.sleep(POLL_S)


def busy(claim: Claim | None, cluster: str = "") -> NotTaken:
    """Return the error of a command that must not change a claimed cluster."""
    if claim is None:
        return NotTaken(
            f"another command is changing cluster '{cluster}'",
            f"See what runs: starcluster listclusters {cluster}",
        )
    return NotTaken(
        f"cluster '{claim.cluster}' is being {claim}",
        f"See what runs: starcluster listclusters {claim.cluster}\n"
        f"If that command no longer runs: starcluster terminate {claim.cluster}",
    )


def exists(ec2: Ec2, cluster: str, found: Sequence[Instance]) -> NotTaken:
    """Return the error of a start of a cluster that has instances."""
    states = "/".join(sorted({instance.state for instance in found}))
    use = "restart" if states == "running" else "start -x"
    return NotTaken(
        f"cluster '{cluster}' already exists in {ec2.region} ({states})",
        f"Use it: starcluster {use} {cluster}\nOr terminate it: starcluster terminate {cluster}",
    )


def notes(ec2: Ec2, clusters: Sequence[str] = ()) -> list[str]:
    """Return a line for each cluster that changes now, or with instances not listed yet.

    Args:
        clusters: Only these; all without any.
    """
    lines = []
    for name, claim in sorted(all_claims(ec2).items()):
        if claim.settled or (clusters and name not in clusters):
            continue
        missing = claim.missing(ec2.instances(cluster=name, states=wait.ANY_STATE))
        if missing:
            names = ", ".join(missing)
            lines.append(f"{name}: being {claim}; AWS does not list yet: {names}")
        elif claim.active:
            lines.append(f"{name}: being {claim}")
    return lines
