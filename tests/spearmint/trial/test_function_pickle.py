"""Pickled functions keep the names of their files and lines."""

from __future__ import annotations

import pickle
import traceback

import pytest

from spearmint.trial.function_pickle import pickled


def test_a_traceback_names_the_file_of_a_function_and_of_one_inside_of_it() -> None:
    def outer() -> None:
        def inner() -> None:
            raise ValueError("deep")

        inner()

    function, number = pickle.loads(pickled((outer, 3)))  # noqa: S301 - made here
    assert number == 3
    with pytest.raises(ValueError, match="deep") as caught:
        function()
    frames = traceback.extract_tb(caught.value.__traceback__)[-2:]
    assert [(frame.filename, frame.name) for frame in frames] == [
        (__file__, "outer"),
        (__file__, "inner"),
    ]
