"""Errors can be pickled, to pass from one process to another."""

from __future__ import annotations

import pickle
from pathlib import Path

from spearmint.errors import ConfigError


def test_an_error_arrives_as_it_was_raised() -> None:
    error = ConfigError(Path("config.pb"), "no variable", "Add one.", line=3, column=1)
    arrived = pickle.loads(pickle.dumps(error))  # noqa: S301 - made above
    assert type(arrived) is ConfigError
    assert str(arrived) == str(error)
    assert vars(arrived) == vars(error)
