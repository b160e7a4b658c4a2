"""Read the configured number of GPUs of many hosts with few calls of qconf."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from sge_jobs.cell.qconf_text import Attributes
from sge_jobs.gpu_state import count
from sge_jobs.model import Host

_MOST_COUNTS = 5
_MOST_SINGLE = 5


def gpu_counts(
    hosts: Sequence[Host],
    hosts_with: Callable[[str], Sequence[str]],
    attributes: Callable[..., Attributes],
) -> dict[str, Attributes]:
    """Return ``complex_values`` of each host; only the part ``gpu=N`` of most hosts.

    ``qconf -se`` shows one host. Most hosts have the number of GPUs that they report, so the hosts
    with each such number are listed; then those that have another value, one after the other.

    Args:
        hosts_with: Returns the names of hosts whose ``complex_values`` match a pattern.
        attributes: Returns the attributes that qconf prints for its arguments.
    """
    known = {host.name: host for host in hosts}
    expected = Counter(number for host in hosts for number in _expected(host))
    left = set(hosts_with("*gpu=*")) & set(known)
    found: dict[str, Attributes] = {name: {} for name in known}
    for number, _ in expected.most_common(_MOST_COUNTS):
        if left:
            same = left & set(hosts_with(f"gpu={number}"))
            found |= {name: {"complex_values": f"gpu={number}"} for name in same}
            left -= same
    for place, name in enumerate(sorted(left)):
        if place < _MOST_SINGLE:
            found[name] = attributes("-se", name)
        elif (gpus := known[name].gpus) is not None:
            found[name] = {"complex_values": f"gpu={gpus}"}
    return found


def _expected(host: Host) -> Iterator[int]:
    if host.gpus is not None:
        yield host.gpus
    try:
        yield count(host.gpu_state)
    except ValueError:
        return
