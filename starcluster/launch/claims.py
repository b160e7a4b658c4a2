"""The claim of a cluster: one command at a time launches its instances, and all others see which.

A claim is a launch template with the name of the cluster. AWS creates a name only once, so of two
commands one gets the claim. Instances are launched with the template: once a claim is deleted, its
command cannot launch, however long it was suspended. The tags tell who launches which nodes.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from starcluster.aws.aliases import unpacked
from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import Instance, LaunchTemplate
from starcluster.errors import ClusterError
from starcluster.launch import wait
from starcluster.launch.process import has_ended, this_process
from starcluster.model import TAG_ALIASES, TAG_CLUSTER, group_name

STALE_S = 300.0
"""Age in seconds after which another command takes over a claim that is not done."""
TERMINATE = "terminate"
POLL_S = 1.0
TAG_BY = "starcluster:by"
TAG_COMMAND = "starcluster:command"
TAG_PROCESS = "starcluster:process"
TAG_DONE = "starcluster:done"  # seconds from the creation of the claim to the end of the launch
_DOING = {"start": "started", "addnode": "extended", TERMINATE: "terminated"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The claim of a cluster as AWS lists it.

    Attributes:
        by: User, host and process of the command.
        aliases: The nodes that the command launches.
        done_s: Seconds since the end of the launch; None until then.
    """

    id: str
    cluster: str
    by: str
    command: str
    process: str
    since: datetime
    age_s: float
    aliases: tuple[str, ...] = ()
    done_s: float | None = None

    @property
    def mine(self) -> bool:
        """Whether a command of this process holds it."""
        return self.process == this_process()[0]

    @property
    def active(self) -> bool:
        """Whether its command can still launch instances."""
        return self.done_s is None and self.age_s < STALE_S and not has_ended(self.process)

    @property
    def settled(self) -> bool:
        """Whether AWS lists all instances of the launch, because enough time has passed."""
        return not self.active and self.settled_in(0.0)

    def settled_in(self, seconds: float) -> bool:
        """Return whether AWS lists all instances after ``seconds`` if the launch has ended."""
        return (self.age_s if self.done_s is None else self.done_s) + seconds > wait.LAG_S

    def missing(self, found: Iterable[Instance]) -> list[str]:
        """Return the aliases that are not among ``found``; instances without alias count too."""
        there = [instance.alias for instance in found]
        left = [alias for alias in self.aliases if alias not in there]
        return left[: max(len(left) - there.count(""), 0)]

    def __str__(self) -> str:
        when = f"{self.since:%H:%M:%S} UTC ({self.age_s:.0f} s ago)"
        return f"{_DOING.get(self.command, 'changed')} by {self.by} since {when}"


def claim_name(cluster: str) -> str:
    """Return the name of the launch template that is the claim of ``cluster``."""
    return f"starcluster/{cluster}"


def all_claims(ec2: Ec2, cluster: str = "*") -> dict[str, Claim]:
    """Return the claims of the region by cluster."""
    found = [_claim(template) for template in ec2.templates(cluster)]
    return {claim.cluster: claim for claim in found}


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
        done_s=max(template.age_s - float(done), 0.0) if done else None,
    )


def settle(ec2: Ec2, claim: Claim) -> list[Instance]:
    """Return the instances of a cluster, when AWS lists all of the launch or ``LAG_S`` passed."""
    begun = time.monotonic()
    ended = claim.age_s if claim.done_s is None else claim.done_s
    left = wait.LAG_S - (0.0 if claim.active else ended)
    while True:
        found = ec2.instances(cluster=claim.cluster, states=wait.ANY_STATE)
        if not claim.missing(found) or time.monotonic() - begun > left:
            return found
        time.sleep(POLL_S)


def existing(ec2: Ec2, cluster: str) -> list[Instance]:
    """Return the instances of a cluster, without those that AWS still lists after their end.

    A cluster with instances has a security group, because AWS deletes none that is in use.
    """
    deadline = time.monotonic() + wait.LAG_S
    while True:
        found = ec2.instances(cluster=cluster)
        if not found or ec2.security_groups(group_name(cluster)) or time.monotonic() > deadline:
            return found
        time.sleep(POLL_S)


def busy(claim: Claim | None, cluster: str = "") -> ClusterError:
    """Return the error of a command that must not change a claimed cluster."""
    if claim is None:
        return ClusterError(
            f"another command is changing cluster '{cluster}'",
            f"See what runs: starcluster listclusters {cluster}",
        )
    return ClusterError(
        f"cluster '{claim.cluster}' is being {claim}",
        f"See what runs: starcluster listclusters {claim.cluster}\n"
        f"If that command no longer runs: starcluster terminate {claim.cluster}",
    )


def exists(ec2: Ec2, cluster: str, found: Sequence[Instance]) -> ClusterError:
    """Return the error of a start of a cluster that has instances."""
    states = "/".join(sorted({instance.state for instance in found}))
    use = "restart" if states == "running" else "start -x"
    return ClusterError(
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
