"""``starcluster prices``: medians over time, GPUs, zones, benchmarks and missing permissions."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import SpotPrice
from starcluster.errors import InputError
from starcluster.money.generations import generation_of
from starcluster.money.past_prices import past_prices, weighted_quantile
from starcluster.money.rates import read_rates
from tests.starcluster.conftest import Run
from tests.starcluster.front import Front
from tests.starcluster.money.spot_history import SpotHistory

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def price(hours: float, dollars: float) -> SpotPrice:
    time = START + timedelta(hours=hours)
    return SpotPrice(type="g5.xlarge", zone="a", price=dollars, time=time)


def test_median_and_p95_weigh_each_price_by_how_long_it_held() -> None:
    steps = [price(-5, 0.1), price(1, 0.9), price(2, 0.3), price(22, 0.5)]  # 1, 1, 20 and 2 h
    (found,) = past_prices(steps, start=START, end=START + DAY).values()
    assert (found.now, found.median, found.p95) == (0.5, 0.3, 0.5)  # 0.9 held for 1 h of 24


def test_quantiles_without_time_count_each_price_once() -> None:
    assert weighted_quantile([(3.0, 0.0), (1.0, 0.0), (2.0, 0.0)], 0.5) == 2.0
    assert weighted_quantile([(1.0, 9.5), (2.0, 0.5)], 0.95) == 1.0


def test_the_facts_of_all_types_with_gpus_are_read(ec2: Ec2) -> None:
    found = {each.name: each for each in ec2.types_with_gpus()}
    part = found["g6f.large"]  # AWS reports that it has 0 GPUs
    assert (part.gpus, part.gpu_part, part.gpu_memory_mib) == (1, 0.125, 2861)
    assert (found["g5.12xlarge"].gpus, found["g5.12xlarge"].gpu_part) == (4, 1.0)
    assert [each.name for each in found.values() if not generation_of(each.gpu_name)] == []


def test_generations() -> None:
    names = ("NVIDIA H100", "NVIDIA Tesla T4", "A10G", "NVIDIA L40S", "NVIDIA X9")
    assert [generation_of(name) for name in names] == ["Hopper", "Turing", "Ampere", "Ada", ""]


@pytest.mark.parametrize(
    "text",
    [
        "type,seconds\ng5.xlarge,840\np5.4xlarge, 600\n",
        '{"g5.xlarge": {"seconds": 840}, "p5.4xlarge": {"per_hour": 6}}',
        '[{"instance_type": "g5.xlarge", "seconds": 840}, {"type": "p5.4xlarge", "per_hour": 6}]',
    ],
)
def test_a_rate_is_read_in_each_format(tmp_path: Path, text: str) -> None:
    (tmp_path / "rates").write_text(text)
    rates = read_rates(tmp_path / "rates")
    assert {name: rate.seconds for name, rate in rates.items()} == {
        "g5.xlarge": 840,
        "p5.4xlarge": 600,
    }


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("type,seconds\ng5.xlarge,-1\n", "'-1'"),
        ("type,seconds\ng5.xlarge,nan\n", "'nan'"),
        ("type,seconds,per_hour\ng5.xlarge,1,1\n", "seconds and per_hour"),
        ("type,seconds\ng5.xlarge,1\ng5.xlarge,2\n", "line 3: duplicate.*g5.xlarge"),
        ("seconds\n1\n", "line 2"),
        ('{"g5.xlarge": 840}', "item 1"),
        ('["g5.xlarge"]', "list of objects"),
        ("{", "JSON"),
        ("", "no rates"),
    ],
)
def test_a_wrong_rate_is_named(tmp_path: Path, text: str, key: str) -> None:
    (tmp_path / "rates").write_text(text)
    with pytest.raises(InputError, match=key):
        read_rates(tmp_path / "rates")
    with pytest.raises(InputError, match="No such file"):
        read_rates(tmp_path / "none")


@pytest.fixture
def market(front: Front) -> SpotHistory:
    """A region with prices of A10G and H100 in two zones."""
    now = datetime.now(UTC)
    front.hourly = {"g5.xlarge": 1.0, "g5.12xlarge": 6.0, "p5.4xlarge": 3.0}
    history = SpotHistory()
    for zone, dollars in (("us-east-1a", 0.5), ("us-east-1b", 0.3)):
        history.set("g5.xlarge", zone, now - 30 * DAY, 0.2)
        history.set("g5.xlarge", zone, now - timedelta(hours=2), dollars)
    history.set("g5.12xlarge", "us-east-1a", now - 9 * DAY, 2.0)
    history.set("p5.4xlarge", "us-east-1a", now - 9 * DAY, 4.0)
    front.answers["DescribeSpotPriceHistory"] = history.answer
    return history


def test_the_cheapest_gpu_hour_comes_first(big: Run, market: SpotHistory) -> None:
    done = big("prices", "--gpu", "a10g", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    first, second = found["offers"][:2]
    assert (first["type"], first["zone"], first["gpus"]) == ("g5.xlarge", "us-east-1b", 1)
    assert (first["gpu"], first["generation"]) == ("A10G", "Ampere")
    assert (first["spot"], first["spot_median"], first["spot_p95"]) == (0.3, 0.2, 0.2)
    assert (first["on_demand"], first["dollars_per_gpu_hour"]) == (1.0, 0.3)
    assert (second["type"], second["dollars_per_gpu_hour"]) == ("g5.12xlarge", 0.5)
    assert second["gpu_memory_gib"] == 22.4
    assert {offer["gpu"] for offer in found["offers"]} == {"A10G"}
    assert market.pages > 1


def test_each_zone_is_listed(big: Run, market: SpotHistory) -> None:
    done = big("prices", "--gpu", "a10g", "--zones")
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[2:]]
    zones = [row[5] for row in rows if row[0] == "g5.xlarge"]
    assert zones[:2] == ["us-east-1b", "us-east-1a"]
    assert len(zones) > 2  # also zones without spot prices


def test_a_benchmark_orders_the_types_by_the_dollars_of_a_training(
    big: Run, market: SpotHistory, tmp_path: Path
) -> None:
    rates = tmp_path / "rates.csv"
    rates.write_text(
        "type,seconds,gpus\ng5.xlarge,3600,\np5.4xlarge,90,\ng5.12xlarge,3600,1\nx9.big,1,\n"
    )
    done = big("prices", "--rate", str(rates), "--json")
    assert done.returncode == 0, done.stderr
    assert "x9.big" in done.stderr
    offers = json.loads(done.stdout)["offers"]
    dollars = [(offer["type"], offer["dollars_per_training"]) for offer in offers[:4]]
    assert dollars[:3] == [("p5.4xlarge", 0.075), ("g5.xlarge", 0.3), ("g5.12xlarge", 0.5)]
    assert dollars[3][1] is None
    assert "TRAINING" in big("prices", "--rate", str(rates)).stdout


def test_prices_without_a_permission_are_named_and_the_others_listed(
    big: Run, front: Front, market: SpotHistory
) -> None:
    front.denied = {"GetProducts"}
    done = big("prices", "--gpu", "h100")
    assert done.returncode == 1
    assert "pricing:GetProducts" in done.stderr
    row = next(line.split() for line in done.stdout.splitlines() if line.startswith("p5.4xlarge"))
    assert row[6:8] == ["-", "4.0000"]
    front.denied = set()
    front.refusals["DescribeSpotPriceHistory"] = [("UnauthorizedOperation", "not allowed")]
    done = big("prices", "--gpu", "h100", "--json")
    assert done.returncode == 1
    assert "ec2:DescribeSpotPriceHistory" in done.stderr
    found = json.loads(done.stdout)
    assert list(found["missing"]) == ["spot"]
    assert found["offers"][0]["on_demand"] == 3.0


def test_an_unknown_gpu_gets_the_names_of_the_region(big: Run, market: SpotHistory) -> None:
    done = big("prices", "--gpu", "h1oo")
    assert done.returncode == 2
    assert "'h1oo'" in done.stderr
    assert "H100" in done.stderr
