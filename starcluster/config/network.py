"""Keys of ``[cluster]`` about the way to the nodes by SSH, with their parsers."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from starcluster.config.account import AccountKeys
from starcluster.config.keys import setting
from starcluster.config.parsers import matching, names, one_of

CALLER, ANYWHERE = "caller", "anywhere"
EVERYBODY = ("0.0.0.0/0", "::/0")


def ssh_from(value: str) -> tuple[str, ...]:
    """Return ``caller``, ``anywhere`` or CIDR blocks, of a list separated by commas."""
    return tuple(dict.fromkeys(_source(item) for item in names(value)))


def _source(item: str) -> str:
    return item if item in (CALLER, ANYWHERE) else cidr(item)


def cidr(value: str) -> str:
    """Return an address or a CIDR block as a CIDR block."""
    try:
        return str(ipaddress.ip_network(value))
    except ValueError as error:
        raise ValueError(
            f"expected {CALLER}, {ANYWHERE}, or addresses such as 203.0.113.0/24: {error}"
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkKeys(AccountKeys):
    """The keys; ``help`` of each describes the field."""

    ssh_from: tuple[str, ...] = field(
        default=(CALLER,),
        metadata=setting(
            ssh_from,
            "Open SSH to these addresses; separate by commas. ``caller`` is the address of the "
            "machine that runs ``start``, ``anywhere`` is everybody. A ``[permission]`` section "
            "with port 22 replaces this key.",
            example="caller, 203.0.113.0/24",
            option="--ssh-from ADDRESSES",
        ),
    )
    ssh_proxy_jump: str = field(
        default="",
        metadata=setting(
            matching(
                r"[A-Za-z0-9_][\w.-]*@[A-Za-z0-9][\w.-]*(:\d{1,5})?",
                "expected user@host or user@host:port",
            ),
            "Reach the nodes, by their private addresses, through this jump host. Your ``ssh`` "
            "logs in to it with your known_hosts, keys and ssh config.",
            example="admin@bastion.example.org",
            unset="a direct connection",
        ),
    )
    ssh_via: str = field(
        default="",
        metadata=setting(
            one_of("ssm"),
            "``ssm``: reach the nodes through Session Manager of AWS, with no open port. Requires "
            "``instance_profile``, and the AWS CLI with its session-manager-plugin.",
            example="ssm",
            unset="a direct connection",
        ),
    )
