"""Wait for many instances and nodes in parallel."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import Instance
from starcluster.errors import NodeError, NotFound, SetupError, SshError, StarClusterError
from starcluster.model import is_master
from starcluster.node.node import Node
from starcluster.threadpool import ThreadPool

RUNNING_S = 600.0
# AWS resets a machine that still hangs four minutes after the reboot request. A machine with eight
# GPUs then needs some minutes more to boot.
SSH_S = 600.0
_BOOT_MARK = "/run/starcluster-before-reboot"  # a reboot empties /run
FIRST_POLL_S, LAST_POLL_S = 0.2, 5.0
# DescribeInstances lags behind RunInstances and StartInstances, usually by seconds: it can omit
# a new instance, or list a started instance as stopped.
LAG_S = 60.0
ANY_STATE = ("pending", "running", "stopping", "stopped", "shutting-down", "terminated")
_STOPPED = frozenset({"stopping", "stopped"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Seconds to wait until an instance runs, and then until it answers SSH."""

    running_s: float = RUNNING_S
    ssh_s: float = SSH_S


def wait_for(ec2: Ec2, ids: Sequence[str], state: str, limit_s: float) -> list[Instance]:
    """Poll instances, all in one request, until each is in ``state`` or can no longer reach it.

    Returns their last state, also after ``limit_s``. Raises NotFound if AWS does not know an
    instance after ``LAG_S``.
    """
    ended = {state, "terminated"} | ({"shutting-down"} if state == "running" else set())
    begun = time.monotonic()
    for pause in backoff_delays():
        lags = time.monotonic() < begun + LAG_S
        if state == "running" and not lags:
            ended |= _STOPPED
        try:
            found = ec2.instances(ids)
        except NotFound:
            if not lags:
                raise
        else:
            waiting = [instance for instance in found if instance.state not in ended]
            known = len(found) == len(set(ids)) or not lags
            if (known and not waiting) or time.monotonic() > begun + limit_s:
                return found
        time.sleep(pause)
    raise AssertionError


def failures_of(nodes: Sequence[Node], work: Callable[[Node], object]) -> dict[str, str]:
    """Do ``work`` on all nodes in parallel; return the failures by alias."""

    def attempt(node: Node) -> str:
        try:
            work(node)
        except StarClusterError as error:
            return error.what.removeprefix(f"{node.alias}: ")
        return ""

    reasons = ThreadPool().map(attempt, nodes)
    return {node.alias: why for node, why in zip(nodes, reasons, strict=True) if why}


def require_master(failed: Mapping[str, str]) -> None:
    """Raise SetupError if the master failed: a cluster cannot exist without it."""
    for alias, why in failed.items():
        if is_master(alias):
            raise SetupError(f"the master failed: {why}", failed=failed)


def backoff_delays() -> Iterator[float]:
    """Yield increasing pauses between polls, in seconds."""
    pause = FIRST_POLL_S
    while True:
        yield pause
        pause = min(pause * 1.4, LAST_POLL_S)


def mark_boot(node: Node) -> None:
    """Prepare for :func:`wait_for_reboot`."""
    node.ssh.checked(["touch", _BOOT_MARK])


def wait_for_reboot(node: Node, limit_s: float) -> None:
    """Wait until the node has rebooted after :func:`mark_boot`. NodeError after ``limit_s``."""
    deadline = time.monotonic() + limit_s
    while True:
        with contextlib.suppress(SshError):
            node.ssh.connect(wait_s=max(deadline - time.monotonic(), 0))
            if not node.ssh.path_exists(_BOOT_MARK):
                return
        node.close()
        if time.monotonic() > deadline:
            raise NodeError(f"it is not reachable {limit_s:g} s after its reboot", alias=node.alias)
        time.sleep(FIRST_POLL_S)
