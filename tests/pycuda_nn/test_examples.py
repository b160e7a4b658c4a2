"""Every public class and function has an example in its docstring, and the example runs."""

from __future__ import annotations

import doctest
import inspect

import pytest

import pycuda_nn as nn


@pytest.mark.parametrize("name", nn.__all__)
def test_the_example_of_each_public_name_runs(name: str) -> None:
    public = getattr(nn, name)
    module = inspect.getmodule(public)
    examples = doctest.DocTestParser().get_doctest(
        inspect.getdoc(public) or "", {}, name, module and module.__file__, 0
    )
    assert examples.examples
    failures: list[str] = []
    doctest.DocTestRunner().run(examples, out=failures.append)
    assert not failures, "".join(failures)
