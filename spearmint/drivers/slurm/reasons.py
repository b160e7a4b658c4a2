"""Why a pending job cannot start, from the reason that Slurm gives."""

from __future__ import annotations

import re

from spearmint.drivers.queue import Obstacle

_TIME = "Request less with --walltime (-l time=...), or another partition: sinfo -o '%P %l'"
_SIZE = "Request less, or another partition: sinfo -N -o '%N %P %c %m %G %f %T'"
_ACCOUNT = "Use a --project and a --qos that you have: sacctmgr show associations user=$USER"
_LIMIT = "Show the limits: sacctmgr show qos; sacctmgr show associations user=$USER"
_HOSTS = "Show the hosts and why they are down: sinfo -R"
# The first that matches is used. True: it can end without a change by a user or manager.
_REASONS = (
    (r"PartitionTimeLimit|\w*MaxWallDurationPerJob\w*", _TIME, False),
    (r"PartitionNodeLimit|PartitionConfig|BadConstraints|QOSMin\w*|AssocMin\w*", _SIZE, False),
    (r"(QOS|Assoc)Max\w*Per(Job|Node)\w*", _SIZE, False),
    (
        r"InvalidAccount|InvalidQOS|QOSNotAllowed|AccountNotAllowed|AccountingPolicy",
        _ACCOUNT,
        False,
    ),
    (r"Association(Job|Resource|Time)Limit|QOS(Job|Resource|Time|Usage)\w*", _LIMIT, True),
    (r"(QOS|Assoc)(Grp|Max)\w*", _LIMIT, True),
    (r"DependencyNeverSatisfied|Constraints|FedJobLock", "Cancel the job: scancel {id}", False),
    (r"PartitionDown|PartitionInactive", "Show the partitions: sinfo -s", True),
    (r"ReqNodeNotAvail.*|NodeDown|ReservationDeleted", _HOSTS, True),
    (r"Nodes_required_for_job_are_DOWN.*|Nodes required for job are DOWN.*", _HOSTS, True),
    (r"BadLicense|InvalidLicense", "Show the licenses: scontrol show licenses", False),
)


def obstacle_of(id: str, state: str, reason: str) -> Obstacle | None:
    """Return why a pending job cannot start; None if it waits for its turn."""
    if state != "PENDING":
        return None
    for pattern, fix, passes in _REASONS:
        if re.fullmatch(pattern, reason):
            text = f"Slurm does not start job {id}: {reason.replace('_', ' ')}"
            return Obstacle(reason=text, fix=fix.format(id=id), key=reason, passes=passes)
    return None
