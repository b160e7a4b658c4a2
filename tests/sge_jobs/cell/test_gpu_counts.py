"""The configured number of GPUs of many hosts, and the commands that remove a host."""

from __future__ import annotations

from sge_jobs.cell.gpu_counts import gpu_counts
from sge_jobs.cell.host_problems import removal
from sge_jobs.cell.qconf_text import CellConfig, parse_queues
from sge_jobs.gpu_state import GpuUse, encode
from sge_jobs.model import Host


def test_a_thousand_hosts_need_a_few_calls_and_other_values_are_read_singly() -> None:
    values = {f"h{n}": "gpu=8" if n % 2 else "gpu=4" for n in range(1000)}
    values |= {"h0": "gpu=2,slots=4", "h1": "NONE"}
    state = encode((GpuUse(index=0, uuid="GPU-a"),))
    hosts = [
        Host(name=name, reachable=True, gpus=8 if int(name[1:]) % 2 else 4, gpu_state=state)
        for name in values
    ]
    calls: list[str] = []

    def hosts_with(pattern: str) -> list[str]:
        calls.append(pattern)
        if pattern == "*gpu=*":
            return [name for name, value in values.items() if "gpu=" in value]
        return [name for name, value in values.items() if value == pattern]

    def attributes(*arguments: str) -> dict[str, str]:
        calls.append(arguments[-1])
        return {"complex_values": values[arguments[-1]]}

    found = gpu_counts(hosts, hosts_with, attributes)
    assert {name: each.get("complex_values", "NONE") for name, each in found.items()} == values
    assert sorted(calls) == ["*gpu=*", "gpu=1", "gpu=4", "gpu=8", "h0"]


def test_all_queues_in_one_answer() -> None:
    text = "qname  a.q\nhostlist @x \\\n      node1\n\nqname  b.q\nslots 4\n"
    assert parse_queues(text) == {
        "a.q": {"qname": "a.q", "hostlist": "@x node1"},
        "b.q": {"qname": "b.q", "slots": "4"},
    }
    assert parse_queues("") == {}


def test_a_host_is_removed_from_all_that_refers_to_it_first() -> None:
    cell = CellConfig(
        queues={"a.q": {"hostlist": "@x n1"}, "b.q": {"hostlist": "@x"}},
        host_groups={"@x": {"hostlist": "n1 n2"}, "@y": {"hostlist": "n11"}},
    )
    assert removal(cell, "n1") == (
        "qconf -dattr hostgroup hostlist n1 @x && qconf -dattr queue hostlist n1 a.q"
        " && qconf -de n1"
    )
    assert removal(cell, "n3") == "qconf -de n3"
