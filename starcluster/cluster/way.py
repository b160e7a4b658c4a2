"""The way to the nodes of a cluster by SSH: direct, through a jump host, or Session Manager."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import Instance
from starcluster.config.template import Template
from starcluster.errors import MissingExtra, SshError, StarClusterError
from starcluster.launch.session_manager import missing_program
from starcluster.logger import log
from starcluster.node.jump import by_jump_host
from starcluster.node.tunnel import Forwarding

_FINAL = ("AccessDenied", "ExpiredToken", "UnrecognizedClient", "InvalidDocument")
_ONLINE = "Online"
_POLL_S = 3.0
_FIX = (
    "Check that instance_profile has a role with AmazonSSMManagedInstanceCore, that the image has "
    "the SSM agent, and that the subnet reaches the ssm and ssmmessages services."
)


class Agents:
    """Whether the SSM agents of instances are online; threads can share it."""

    def __init__(self, ec2: Ec2, ids: Iterable[str]) -> None:
        self._ec2, self._ids = ec2, set(ids)
        self._lock = threading.Lock()
        self._known: dict[str, str] = {}
        self._next = 0.0

    def require(self, instance: Instance) -> None:
        """Raise SshError unless the agent of an instance is online, or unknown.

        Raises:
            MissingExtra: A program for sessions is not installed on this machine.
        """
        if problem := missing_program():
            raise MissingExtra(*problem)
        status = self._status(instance.id)
        if status != _ONLINE:
            name = instance.alias or instance.id
            what = f"is {status}" if status else "has not registered with AWS"
            raise SshError(f"{name}: the SSM agent of {instance.id} {what}", _FIX)

    def _status(self, id: str) -> str:
        with self._lock:
            late = self._known.get(id) != _ONLINE and time.monotonic() >= self._next
            if late or id not in self._ids:
                self._ids.add(id)
                self._ask()
            return self._known.get(id, "")

    def _ask(self) -> None:
        waiting = sorted(id for id in self._ids if self._known.get(id) != _ONLINE)
        try:
            self._known |= self._ec2.agents(waiting)
        except StarClusterError as error:  # the session itself will tell
            log.debug("SSM agents: %s", error.what)
            self._known |= dict.fromkeys(waiting, _ONLINE)
        self._next = time.monotonic() + _POLL_S


def way_to(ec2: Ec2, template: Template, agents: Agents, instance: Instance) -> Forwarding | None:
    """Return how to reach an instance; None for a direct connection."""
    if template.ssh_via:
        return Forwarding(
            argv=ec2.session_argv(instance.id),
            through="Session Manager",
            fix=_FIX,
            final=_FINAL,
            environment=ec2.session_environment,
            check=lambda: agents.require(instance),
        )
    if jump := template.ssh_proxy_jump:
        return by_jump_host(jump, template.key.location, instance.private_ip)
    return None
