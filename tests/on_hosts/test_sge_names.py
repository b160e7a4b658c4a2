"""Names that a shell, qsub or a queue can handle wrongly."""

from __future__ import annotations

import re

import pytest

from tests.on_hosts.conftest import MakeSearch
from tests.testbed.cell import USER

pytestmark = pytest.mark.sge

HARD = """it's a: dir, "ünd" more? 5%41 #1 $HOME `id` \\\\n & 日本;"""


def test_a_directory_and_an_experiment_with_hard_names(make_search: MakeSearch) -> None:
    assert USER[0].isdigit()
    search = make_search(directory=HARD, name="4net", trials=6, steps=10)
    controller = search.start("--queue-ahead=1")
    search.wait_running(1)
    controller.kill()
    search.start("--queue-ahead=1").end()
    search.assert_complete()
    assert len(search.runs()) == 6


def test_a_variable_and_a_line_of_setup_with_hard_values(make_search: MakeSearch) -> None:
    code = """
import os
def main(job_id, params):
    assert os.environ["HARD"] == {hard!r}, os.environ["HARD"]
    assert os.environ["FROM_SETUP"] == "a 'é'  $x", os.environ["FROM_SETUP"]
    return 1.0
"""
    search = make_search(code=code.replace("{hard!r}", repr(HARD)), trials=2)
    setup = """FROM_SETUP="a 'é'  \\$x"; export FROM_SETUP"""
    output = search.start(f"--env=HARD={HARD}", f"--setup={setup}").end()
    assert re.search(r"\b2\b.*\(0 broken\)", output)
