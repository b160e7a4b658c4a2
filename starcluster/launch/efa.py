"""Elastic Fabric Adapter: the network interfaces of a node, and the checks of ``efa``; no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from starcluster.aws.model import InstanceType, Interface
from starcluster.config.template import Template

_LIST = "aws ec2 describe-instance-types --query 'InstanceTypes[].InstanceType' "
_LIST += "--filters Name=network-info.efa-supported,Values=true"


def interfaces(kind: InstanceType | None) -> tuple[Interface, ...]:
    """Return the interfaces of a node with EFA, one for each network card; empty without EFA.

    The first one has the address of the node, so it cannot be efa-only. On other cards, an
    efa-only interface needs no address.
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html
    """
    if kind is None or not kind.efa:
        return ()
    cards = dict(sorted(kind.cards.items())) or {0: ()}
    first, *others = cards
    left = kind.efa
    found = [Interface(card=first, device=0, type=_first(cards[first]))]
    left -= found[0].type == "efa"
    for card in others[:left]:
        efa_only = "efa-only" in cards[card]
        found.append(Interface(card=card, device=1, type="efa-only" if efa_only else "efa"))
    return tuple(found)


def _first(types: Iterable[str]) -> str:
    known = tuple(types)
    return "efa" if "efa" in known or not known else "interface"


def wanted(template: Template, types: Mapping[str, InstanceType]) -> dict[str, InstanceType]:
    """Return the instance types whose nodes get EFA."""
    if template.efa == "false":
        return {}
    return {name: kind for name, kind in types.items() if kind.efa}


def problems(template: Template, types: Mapping[str, InstanceType]) -> Iterator[tuple[str, str]]:
    """Yield the config key and the text of what prevents EFA, or a public address with it."""
    have = wanted(template, types)
    # A master of another type, without GPUs, needs none.
    needed = [kind.instance_type for kind in template.types_of_nodes()]
    needed = needed or [template.type_of_master().instance_type]
    if template.efa == "true":
        for name in dict.fromkeys([*needed, *template.fallback_instance_types]):
            if name in types and name not in have:
                yield "efa", f"{name} has no EFA. List the types that have: {_LIST}"
    for name, kind in have.items():
        if template.public_ips and len(interfaces(kind)) > 1:
            text = (
                f"{name} has {len(interfaces(kind))} network interfaces with EFA, so AWS gives it"
            )
            yield "public_ips", f"{text} no public address. Remove public_ips; connect in the VPC"


def lines(template: Template, types: Mapping[str, InstanceType]) -> Iterator[str]:
    """Yield what the user should know about the network of the nodes before the launch."""
    for name, kind in wanted(template, types).items():
        cards = interfaces(kind)
        yield f"EFA: {name} has {len(cards)} network interfaces ({', '.join(_counts(cards))})"
        if len(cards) > 1:
            yield (
                f"WARNING: {name} may have no public address, because it has several network "
                "interfaces. starcluster then connects to its private address: run it in the VPC, "
                "through a VPN, or set ssh_proxy_jump or ssh_via."
            )


def _counts(cards: Iterable[Interface]) -> list[str]:
    types = [card.type for card in cards]
    return [f"{types.count(name)} {name}" for name in dict.fromkeys(types)]
