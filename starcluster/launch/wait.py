"""Wait for instances and nodes, many at once."""

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
# AWS resets a machine that hangs four minutes after the call to reboot, and one with eight GPUs
# takes some minutes more to boot.
SSH_S = 600.0
_BOOT_MARK = "/run/starcluster-before-reboot"  # a reboot empties /run
FIRST_POLL_S, LAST_POLL_S = 0.2, 5.0
# DescribeInstances lags behind RunInstances and StartInstances, mostly by seconds: it may not
# know an instance yet, or know it as stopped that was started.
LAG_S = 60.0
_STOPPED = frozenset({"stopping", "stopped"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Seconds to wait for an instance to run, and then for its SSH."""

    running_s: float = RUNNING_S
    ssh_s: float = SSH_S


def wait_for(ec2: Ec2, ids: Sequence[str], state: str, limit_s: float) -> list[Instance]:
    """Poll instances, all by one request, until each is in ``state`` or never will be.

    Returns them as they are then, or after ``limit_s``. Raises NotFound for one that AWS still
    does not know after ``LAG_S``.
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
    """Do ``work`` on all nodes at once; return why it failed, by alias."""

    def attempt(node: Node) -> str:
        try:
            work(node)
        except StarClusterError as error:
            return error.what.removeprefix(f"{node.alias}: ")
        return ""

    reasons = ThreadPool().map(attempt, nodes)
    return {node.alias: why for node, why in zip(nodes, reasons, strict=True) if why}


def require_master(failed: Mapping[str, str]) -> None:
    """Raise SetupError where the master is among the ``failed``: without it there is no cluster."""
    for alias, why in failed.items():
        if is_master(alias):
            raise SetupError(f"the master cannot be used: {why}", failed=failed)


def backoff_delays() -> Iterator[float]:
    """Yield seconds to wait between two polls, longer and longer."""
    pause = FIRST_POLL_S
    while True:
        yield pause
        pause = min(pause * 1.4, LAST_POLL_S)


def mark_boot(node: Node) -> None:
    """Prepare for :func:`wait_for_reboot`."""
    node.ssh.checked(["touch", _BOOT_MARK])


def wait_for_reboot(node: Node, limit_s: float) -> None:
    """Return when the node has rebooted since it was marked. NodeError after ``limit_s``."""
    deadline = time.monotonic() + limit_s
    while True:
        with contextlib.suppress(SshError):
            node.ssh.connect(wait_s=max(deadline - time.monotonic(), 0))
            if not node.ssh.path_exists(_BOOT_MARK):
                return
        node.close()
        if time.monotonic() > deadline:
            raise NodeError("it did not come back from its reboot", alias=node.alias)
        time.sleep(FIRST_POLL_S)
