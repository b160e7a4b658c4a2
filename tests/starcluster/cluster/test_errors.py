"""Errors of worker processes arrive unchanged."""

from __future__ import annotations

import pickle

from starcluster.errors import SetupError


def test_an_error_arrives_as_it_was_raised() -> None:
    error = SetupError("2 nodes failed", "Look at the log.", failed={"node001": "disk full"})
    arrived = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert type(arrived) is SetupError
    assert str(arrived) == str(error)
    assert vars(arrived) == vars(error)
