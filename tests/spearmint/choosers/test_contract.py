"""The built-in choosers satisfy the contract of a chooser."""

from __future__ import annotations

from typing import ClassVar

from spearmint.choosers import CHOOSERS
from spearmint.choosers.testing import ChooserContract


class TestGPEIOptChooser(ChooserContract):
    chooser = "GPEIOptChooser"


class TestGPEIChooser(ChooserContract):
    chooser = "GPEIChooser"


class TestGPEIperSecChooser(ChooserContract):
    chooser = "GPEIperSecChooser"


class TestGPConstrainedEIChooser(ChooserContract):
    chooser = "GPConstrainedEIChooser"


class TestRandomForestEIChooser(ChooserContract):
    chooser = "RandomForestEIChooser"
    args: ClassVar = {"n_trees": "20"}


class TestCMAChooser(ChooserContract):
    chooser = "CMAChooser"


class TestRandomChooser(ChooserContract):
    chooser = "RandomChooser"


class TestSequentialChooser(ChooserContract):
    chooser = "SequentialChooser"


def test_each_of_ours_is_tested() -> None:
    tested = {kind.chooser for kind in ChooserContract.__subclasses__()}
    assert tested >= set(CHOOSERS)
