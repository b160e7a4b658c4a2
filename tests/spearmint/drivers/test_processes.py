"""Processes on hosts without pidfd_open."""

from __future__ import annotations

import errno
import os

import pytest

from spearmint.drivers.processes import wait_for_end


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM])
def test_a_kernel_that_refuses_pidfds_is_waited_on_all_the_same(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(pid: int) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "pidfd_open", refuse)
    wait_for_end([os.getpid()], 60)  # returns early: the control loop then polls
