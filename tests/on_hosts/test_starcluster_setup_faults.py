"""Faults while hosts are set up, and the cluster after them."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Callable

import pytest

from starcluster.setup import SetupResult, Step, add_nodes, remove_nodes, set_up
from tests.on_hosts.test_starcluster_setup_on_hosts import (
    TEMPLATE,
    queue_states,
    where_jobs_run,
)
from tests.testbed.ssh_hosts import SshHosts

pytestmark = pytest.mark.sge
logging.getLogger("paramiko").setLevel(logging.CRITICAL)


def test_hosts_that_never_answer_die_or_lose_ssh_are_named_and_mended_by_a_second_run() -> None:
    with SshHosts("master", "node001", "node002", "node003", "node004") as hosts:
        hosts.machines["node002"].kill()  # it never answers
        done = threading.Event()

        def fault(alias: str, what: str) -> None:
            if (alias, what) == ("node003", Step.JOIN):
                hosts.machines["node003"].kill()  # it fails during the setup
            if (alias, what) == ("node004", Step.PREPARE) and not done.is_set():
                done.set()
                for pid in hosts.machines["node004"].processes("sshd: root"):
                    with contextlib.suppress(ProcessLookupError):  # it ended with another one
                        os.kill(pid, signal.SIGKILL)  # its connection is lost

        nodes = hosts.nodes()
        # The others answer, on a busy machine late.
        nodes[2].ssh.timeout_s, nodes[3].ssh.timeout_s = 10, 60

        def broken() -> SetupResult:
            return set_up(nodes, TEMPLATE, progress=fault)

        result = hosts.within(broken)
        assert {"node002", "node003"} <= set(result.failed)
        assert "port 22" in result.failed["node002"]
        assert {"master", "node001"} <= set(result.ready)
        assert set(result.ready) | set(result.failed) == set(hosts.machines)

        def after() -> None:
            master = nodes[0]
            states = queue_states(master)
            assert "node002" not in states
            assert "d" in states["node003"]
            assert where_jobs_run(master, ["node001"]) == ["node001"]
            # Dead nodes are removed without contact; the node with the lost connection works.
            dead = [nodes[2], nodes[3]]
            remove_nodes(dead, nodes, TEMPLATE)
            well = [nodes[0], nodes[1], nodes[4]]
            assert set_up(well, TEMPLATE).failed == {}
            assert sorted(queue_states(master)) == ["master", "node001", "node004"]
            assert set(queue_states(master).values()) == {""}

        hosts.within(after)
        _replace(hosts, hosts.within)


def _replace(hosts: SshHosts, within: Callable[..., SetupResult]) -> None:
    """Replace dead hosts by new hosts with the same names and other addresses."""
    hosts.add("node002", "node003")
    nodes = hosts.nodes(["master", "node001", "node004"])
    new = hosts.nodes(["node002", "node003"])
    # The master may take a minute to look up the name of a removed host again.
    assert within(add_nodes, new, nodes, TEMPLATE) == SetupResult(ready=("node002", "node003"))

    def check() -> SetupResult:
        assert where_jobs_run(nodes[0], ["node002", "node003"]) == ["node002", "node003"]
        for node in new:
            found = nodes[1].ssh.execute(f"getent hosts {node.alias} | cut -d' ' -f1")
            assert found == [node.private_ip_address]
        return SetupResult(ready=())

    within(check)
