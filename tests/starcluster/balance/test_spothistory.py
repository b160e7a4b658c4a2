"""``starcluster spothistory``: means over time, the plot, and unknown types."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree

from starcluster.aws.model import SpotPrice
from starcluster.balance.stats.plots import write_plot
from starcluster.commands.spothistory import summary
from tests import commands

START = datetime(2026, 1, 1, tzinfo=UTC)


def price(zone: str, hours: float, dollars: float) -> SpotPrice:
    return SpotPrice(
        type="g5.xlarge", zone=zone, price=dollars, time=START + timedelta(hours=hours)
    )


def test_a_mean_weighs_each_price_by_how_long_it_held() -> None:
    prices = [price("b", 9, 4.0), price("a", 0, 1.0), price("b", -5, 2.0)]
    cheap, dear = summary(prices, start=START, end=START + timedelta(hours=12))
    assert (cheap.zone, cheap.now, cheap.mean) == ("a", 1.0, 1.0)
    assert (dear.zone, dear.now, dear.lowest, dear.highest) == ("b", 4.0, 2.0, 4.0)
    assert dear.mean == (9 * 2.0 + 3 * 4.0) / 12


def test_one_price_at_the_last_moment() -> None:
    (only,) = summary([price("a", 1, 3.0)], start=START, end=START + timedelta(hours=1))
    assert (only.now, only.mean) == (3.0, 3.0)


def test_the_drawing_names_every_zone(tmp_path: Path) -> None:
    prices = [price("us-east-1a", 0, 1.0), price("us-east-1a", 2, 2.0), price("us-east-1b", 1, 1.5)]
    file = tmp_path / "p.svg"
    write_plot(file, prices, title="g5.xlarge", end=START + timedelta(hours=4))
    text = file.read_text()
    assert ElementTree.fromstring(text).tag.endswith("svg")  # noqa: S314 - our own file
    for part in ("us-east-1a", "us-east-1b", "dollars per hour"):
        assert part in text


def test_the_command(aws: str, tmp_path: Path) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        env = os.environ | {"HOME": str(tmp_path), "AWS_ENDPOINT_URL": aws}
        return commands.starcluster("-r", "us-east-1", "spothistory", *words, env=env, cwd=tmp_path)

    done = run("t3.micro", "--zone", "us-east-1a", "--plot")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].split() == ["ZONE", "NOW", "MEAN", "LOWEST", "HIGHEST"]
    assert len(done.stdout.splitlines()) == 3
    assert (tmp_path / "spothistory-t3.micro.svg").exists()
    done = run("t3.micr", "--json")
    assert done.returncode == 2
    assert "'t3.micro'" in done.stderr
    assert run("t3.micro", "-s", "2026-01-02", "-e", "2026-01-01").returncode == 2
