"""The parts of the fabric that do not require root."""

from __future__ import annotations

import os

import pytest

from tests.testbed.fabric import Node


def test_a_host_that_is_lost_is_not_lost_again(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node.__new__(Node)
    node.pid, node._process = 0, None
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("number 0 is the tests' own group"))
    node.kill()
    assert not node.is_up
