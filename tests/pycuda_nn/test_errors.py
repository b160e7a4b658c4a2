"""Errors can be pickled, as the errors of trials in worker processes are."""

from __future__ import annotations

import pickle

import pytest

from pycuda_nn.errors import ConfigError, MissingExtra, PycudaNNError, TrainingDiverged


@pytest.mark.parametrize(
    "error",
    [
        TrainingDiverged(epoch=3, step=5, lr=0.2),
        MissingExtra("pandas", "data", "reading tables"),
        ConfigError("2 problems", "Fix them.", ["lr is -1", "units is 0"]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_arrives_as_it_was_raised(error: PycudaNNError) -> None:
    arrived = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert type(arrived) is type(error)
    assert str(arrived) == str(error)
    assert vars(arrived) == vars(error)
