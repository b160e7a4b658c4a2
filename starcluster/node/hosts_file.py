"""Compute the lines of /etc/hosts and known_hosts for the nodes of a cluster; no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from starcluster.node.host_keys import split

BEGIN = "# starcluster: nodes"
END = "# starcluster: end"


def without_names(text: str, names: Iterable[str]) -> str:
    """Return the text of /etc/hosts without the lines of ``names``."""
    gone = set(names)
    lines = [
        line
        for line in text.splitlines()
        if line in (BEGIN, END) or not gone.intersection(line.partition("#")[0].split()[1:])
    ]
    return "".join(f"{line}\n" for line in lines)


def with_names(text: str, addresses: Mapping[str, str]) -> str:
    """Return the text of /etc/hosts with each name of ``addresses`` as the first of its address.

    Grid Engine requires that the first name of a host's address is the host's own name. This
    therefore removes other lines with these addresses, and Debian's line for 127.0.1.1. Other
    nodes of the cluster stay.
    """
    kept, ours, inside = [], {}, False
    for line in text.splitlines():
        fields = line.partition("#")[0].split()
        if line in (BEGIN, END):
            inside = line == BEGIN
        elif inside and len(fields) == 2:
            ours[fields[1]] = fields[0]
        elif not fields or fields[0] not in {"127.0.1.1", *addresses.values()}:
            kept.append(line)
    ours |= addresses
    taken = set(addresses.values())
    ours = {n: ip for n, ip in ours.items() if n in addresses or ip not in taken}
    lines = [f"{address} {name}" for name, address in ours.items()]
    outer = without_names("\n".join(kept), ours)
    return outer + "".join(f"{line}\n" for line in (BEGIN, *lines, END))


def known_hosts(text: str, keys: Mapping[tuple[str, ...], str]) -> str:
    """Return the text of known_hosts in which each group of names has only its own key."""
    ours = {name for names in keys for name in names}
    kept = [
        line
        for line in text.splitlines()
        if line.startswith("#") or not ours.intersection(line.split(" ", 1)[0].split(","))
    ]
    added = [f"{','.join(names)} {split(key)[0]}" for names, key in keys.items()]
    return "".join(f"{line}\n" for line in (*kept, *added))
