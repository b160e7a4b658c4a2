"""Each line of the threat model names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "why" / "gpu_threats.rst").read_text(encoding="utf-8")


def test_each_line_has_tests_that_exist() -> None:
    lines = PAGE.split("   * - ")[2:]
    assert len(lines) >= 10
    for line in lines:
        named = re.findall(r"``(\w+\.py)::(\w+)``", line.partition("What remains possible")[0])
        assert named, line
        for file, test in named:
            (path,) = (ROOT / "tests").rglob(file)
            assert f"def {test}(" in path.read_text(encoding="utf-8"), f"{file} has no {test}"
