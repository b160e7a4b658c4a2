"""Who can connect to the nodes of a cluster by SSH: find the addresses, open and close them."""

from __future__ import annotations

import functools
import getpass
import ipaddress
import re
import socket
from collections.abc import Iterable, Sequence

from starcluster.aws.caller import address_of_caller
from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import Instance, SecurityGroup, Subnet
from starcluster.config.network import ANYWHERE, CALLER, EVERYBODY, cidr
from starcluster.config.sections import Permission
from starcluster.config.template import Template
from starcluster.errors import ClusterError, ConfigError, StarClusterError
from starcluster.logger import log
from starcluster.model import group_name

_PORT = 22
_NAME = "starcluster ssh"


def rules_of(template: Template, caller: str) -> tuple[Permission, ...]:
    """Return the ports to open for a template.

    Args:
        caller: Address of this machine; empty if ``ssh_from`` does not need it.
    """
    if template.ssh_via or limits_ssh(template):
        return template.permissions
    blocks: list[str] = []
    for source in template.ssh_from:
        blocks += EVERYBODY if source == ANYWHERE else (caller if source == CALLER else source,)
    rules = [_rule(block, mine=block == caller) for block in blocks if block]
    return (*rules, *template.permissions)


def limits_ssh(template: Template) -> bool:
    """Return whether a permission of the template covers SSH."""
    return any(_covers_ssh(permission) for permission in template.permissions)


def _admits_caller(template: Template) -> bool:
    return CALLER in template.ssh_from and not template.ssh_via and not limits_ssh(template)


def caller_of(ec2: Ec2, template: Template, subnets: Sequence[Subnet]) -> str:
    """Return the address of this machine as a CIDR block; empty if ``template`` does not need it.

    Raises:
        Unreachable: It is unknown.
    """
    if not _admits_caller(template):
        return ""
    if problem := jump_problem(template):
        raise ConfigError(
            f"template '{template.name}': ssh_proxy_jump: {problem}", "Set it, or use --ssh-from."
        )
    public = template.public_ips
    if public is None:
        public = any(subnet.public_ips for subnet in subnets) or not subnets
    inside = "" if public else subnets[0].cidr.partition("/")[0]
    return cidr(address_of_caller(ec2.address(), inside))


def jump_problem(template: Template) -> str:
    """Return why the nodes would not admit the jump host of a template, or an empty text."""
    if not template.ssh_proxy_jump or template.ssh_from != (CALLER,) or limits_ssh(template):
        return ""
    return "requires ssh_from with the address of the jump host that the nodes see, e.g. 10.0.0.5"


def _rule(block: str, *, mine: bool) -> Permission:
    name = _of_this_user() if mine else _NAME
    return Permission(name=name, from_port=_PORT, to_port=_PORT, cidr_ip=block)


def _of_this_user() -> str:
    """Return the description of the rules that ``allow`` of this user replaces."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = "unknown"
    text = f"{_NAME} {user}@{socket.gethostname().partition('.')[0]}"
    return re.sub(r"[^A-Za-z0-9 @._-]", "-", text)[:255]


def _covers_ssh(permission: Permission) -> bool:
    if permission.ip_protocol == "-1":
        return True
    return permission.ip_protocol == "tcp" and (permission.from_port <= _PORT <= permission.to_port)


def ssh_rules(group: SecurityGroup) -> list[Permission]:
    """Return the rules of a group that let addresses connect by SSH."""
    return [rule for rule in group.permissions if _covers_ssh(rule)]


def open_ssh(ec2: Ec2, cluster: str, blocks: Sequence[str], *, only: bool = False) -> list[str]:
    """Open SSH of a cluster to ``blocks`` for this user, who loses other addresses.

    Args:
        only: Close SSH for everybody else too.

    Returns:
        The addresses that were closed.

    Raises:
        ClusterError: The cluster has no security group.
    """
    closed: list[str] = []
    for group in _groups(ec2, cluster):
        ec2.open_ports(group.id, [_rule(block, mine=True) for block in blocks])
        old = [
            rule
            for rule in group.permissions
            if (rule.ip_protocol, rule.from_port, rule.to_port) == ("tcp", _PORT, _PORT)
            and rule.cidr_ip not in blocks
            and (only or rule.name == _of_this_user())
        ]
        ec2.close_ports(group.id, old)
        closed += [rule.cidr_ip for rule in old]
    return closed


def admit_caller(ec2: Ec2, cluster: str, template: Template, instance: Instance) -> None:
    """Open SSH to this machine if the template says so and it is closed; only warn if unknown."""
    if not _admits_caller(template):
        return
    try:
        mine = _caller(ec2, "" if instance.public_ip else instance.private_ip)
        if not _contains((rule.cidr_ip for rule in allowed(ec2, cluster)), mine):
            for group in _groups(ec2, cluster):
                ec2.open_ports(group.id, [_rule(cidr(mine), mine=True)])
    except StarClusterError as error:
        log.warning("SSH is not opened to this machine: %s", error.what)


def allowed(ec2: Ec2, cluster: str) -> list[Permission]:
    """Return the rules for SSH of a cluster. Raises ClusterError without a security group."""
    return [rule for group in _groups(ec2, cluster) for rule in ssh_rules(group)]


def _groups(ec2: Ec2, cluster: str) -> list[SecurityGroup]:
    found = ec2.security_groups(group_name(cluster))
    if not found:
        raise ClusterError(
            f"cluster '{cluster}' has no security group in {ec2.region}",
            "List the clusters: starcluster listclusters",
        )
    return found


def why_no_answer(ec2: Ec2, cluster: str, instance: Instance) -> tuple[str, str]:
    """Return why an instance does not answer this machine, and the fix; empty if unknown."""
    try:
        inside = "" if instance.public_ip else instance.private_ip
        mine = _caller(ec2, inside)
        rules = allowed(ec2, cluster)
    except StarClusterError:
        return "", ""
    if _contains((rule.cidr_ip for rule in rules), mine):
        return "", ""
    return (
        f"its security group does not allow SSH from {mine}, the address of this machine",
        f"Allow it: starcluster allow {cluster}",
    )


@functools.lru_cache(maxsize=8)
def _caller(ec2: Ec2, inside: str) -> str:
    return address_of_caller(ec2.address(), inside)


def _contains(blocks: Iterable[str], address: str) -> bool:
    wanted = ipaddress.ip_address(address)
    networks = [ipaddress.ip_network(block) for block in blocks if block]
    return any(wanted in network for network in networks if network.version == wanted.version)
