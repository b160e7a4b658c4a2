"""The thread pool of plugins: order, concurrency, and errors with the names of nodes."""

from __future__ import annotations

import re
import threading

import pytest

from starcluster.clustersetup import DefaultClusterSetup, for_each
from starcluster.errors import NodeError, SetupError
from starcluster.node import Node
from starcluster.testing import FakeNode
from starcluster.threadpool import ThreadPool


def test_results_come_in_the_order_of_the_jobs_and_all_run_at_once() -> None:
    together = threading.Barrier(8, timeout=20)

    def work(number: int) -> int:
        together.wait()
        return number * number

    assert ThreadPool().map(work, range(8)) == [number * number for number in range(8)]


def test_no_more_threads_than_its_size() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def work(_: int) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.01)
        with lock:
            running -= 1

    ThreadPool(3).map(work, range(12))
    assert most <= 3


def test_jobs_as_plugins_of_the_original_give_them() -> None:
    setup = DefaultClusterSetup()
    done: list[tuple[object, ...]] = []
    setup.pool.simple_job(lambda *a: done.append(a), ("a", "b"), jobid="node001")
    setup.pool.simple_job(lambda *a: done.append(a), "htop", jobid="node002")
    setup.pool.simple_job(lambda **k: done.append(tuple(k)), kwargs={"word": 1})
    setup.pool.wait(numtasks=3)
    assert sorted(map(str, done)) == ["('a', 'b')", "('htop',)", "('word',)"]
    assert setup.pool.wait() == []


def test_every_failed_node_is_in_one_error_and_a_bug_is_raised_as_it_is() -> None:
    nodes = [FakeNode(name) for name in ("node001", "node002", "node003")]

    def work(node: Node) -> None:
        if node is not nodes[1]:
            raise NodeError(f"{node.alias}: too old")

    with pytest.raises(SetupError) as caught:
        for_each(nodes, work)
    assert caught.value.failed == {"node001": "too old", "node003": "too old"}
    assert re.search(r"\b2 \w+ 3\b", caught.value.what)
    with pytest.raises(ZeroDivisionError):
        ThreadPool().map(lambda n: 1 / n, [1, 0])
