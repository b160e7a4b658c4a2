"""The results of the self-test of a GPU."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field


@dataclass
class Check:
    """The result of one test; the names of ``figures`` include their units."""

    name: str
    passed: bool
    detail: str
    figures: dict[str, float] = field(default_factory=dict)


@dataclass
class Report:
    """The results of one GPU."""

    host: str
    index: int
    uuid: str
    name: str
    cuda: str
    checks: list[Check]
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether every test passed."""
        return all(check.passed for check in self.checks)


def print_report(report: Report) -> None:
    """Print the report as text."""
    lines = [f"{report.host} GPU {report.index} {report.uuid} {report.name}"]
    for check in report.checks:
        lines.append(f"  {'passed' if check.passed else 'FAILED'}  {check.name}: {check.detail}")
    lines.append(f"  {'sound' if report.passed else 'NOT SOUND'} after {report.seconds:.0f} s")
    sys.stdout.write("\n".join(lines) + "\n")
