"""``spearmint plan``: its parts by hand, its promise in simulated searches, and the command."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from spearmint.cli.plan_screen import of_each
from spearmint.errors import InputError, SpearmintError
from spearmint.plan import (
    GuessedDurations,
    LearnedDurations,
    NodeOffer,
    Planner,
    Wanted,
    parse_deadline,
    parse_price,
    parse_range,
    worth,
)
from spearmint.plan.durations import Draws
from spearmint.plan.offers import ask_starcluster, bill_offers, offers_of, read_prices
from spearmint.plan.schedule import Delays
from starmint.bill import Bill, NodeRun, Price, bill_text
from tests import commands
from tests.spearmint.conftest import ONE_FLOAT, MakeExperiment

BENCHMARK = Path(__file__).parents[3] / "benchmarks/plan_calibration.py"
NOW = datetime(2026, 11, 25, 14, 30).astimezone()
FAST = Delays(boot=(60.0, 60.0), gap_s=0.0, losses_per_day=0.0)
G5 = NodeOffer(type="g5.xlarge", dollars=1.0)


@dataclass(frozen=True)
class Fixed:
    """All trials take the same time."""

    seconds: float

    def draw(self, random: np.random.Generator, searches: int, trials: int) -> Draws:
        return np.full((searches, trials), self.seconds)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("18:00", datetime(2026, 11, 25, 18)),
        ("9:05", datetime(2026, 11, 26, 9, 5)),
        ("14:30", datetime(2026, 11, 26, 14, 30)),
        ("2026-11-27 09:30", datetime(2026, 11, 27, 9, 30)),
        ("2026-11-27T09:30", datetime(2026, 11, 27, 9, 30)),
        ("6h", datetime(2026, 11, 25, 20, 30)),
        ("90", datetime(2026, 11, 25, 14, 31, 30)),
    ],
)
def test_a_deadline_is_a_clock_time_a_date_or_a_duration(text: str, expected: datetime) -> None:
    assert parse_deadline(text, NOW) == expected.astimezone()


@pytest.mark.parametrize(
    ("now", "text", "expected"),
    [
        ("2027-03-27 20:00+01:00", "02:30", "2027-03-28 03:30+02:00"),  # skipped
        ("2027-03-27 20:00+01:00", "2027-03-28 02:30", "2027-03-28 03:30+02:00"),
        ("2027-03-27 20:00+01:00", "01:59", "2027-03-28 01:59+01:00"),
        ("2027-03-27 20:00+01:00", "03:00", "2027-03-28 03:00+02:00"),
        ("2027-10-30 20:00+02:00", "02:30", "2027-10-31 02:30+02:00"),  # the first of two
    ],
)
def test_a_deadline_when_the_clock_changes(
    monkeypatch: pytest.MonkeyPatch, now: str, text: str, expected: str
) -> None:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0/2,M10.5.0/3")
    time.tzset()
    try:
        found = parse_deadline(text, datetime.fromisoformat(now))
        assert found == datetime.fromisoformat(expected)
        assert found.isoformat(" ", "minutes") == expected
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_date_can_name_its_time_zone() -> None:
    expected = datetime(2026, 11, 27, 9, 30, tzinfo=UTC) - timedelta(hours=5)
    assert parse_deadline("2026-11-27 09:30+05:00", NOW) == expected


@pytest.mark.parametrize(
    "text", ["", "25:00", "12:60", "noon", "2026-13-01", "2026-11-25", "-6h", "99999999d"]
)
def test_another_deadline_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"invalid|passed"):
        parse_deadline(text, NOW)


def test_prices_and_ranges_are_read() -> None:
    assert parse_price("g5.12xlarge=5.67:4") == NodeOffer(
        type="g5.12xlarge", dollars=5.67, gpus=4.0
    )
    assert parse_price("a=0").gpus == 1.0
    for text in ("", "a", "a=", "=1", "a=-1", "a=1:0", "a=nan", "a=inf", "a=1:x"):
        with pytest.raises(ValueError, match="TYPE=DOLLARS"):
            parse_price(text)
    assert parse_range("2m..5m") == (120.0, 300.0)
    low, high = parse_range("120")
    assert low < 120 < high
    for text in ("5m..2m", "a..b", "..", "0..1", "9999999d", "1..9999999d"):
        with pytest.raises(ValueError, match="invalid"):
            parse_range(text)


def test_a_plan_of_equal_trials_is_the_one_by_hand() -> None:
    planner = Planner(Wanted(trials=10), Fixed(100.0), FAST)
    row = planner.row(G5, 2)
    assert row is not None
    assert (row.trials, row.at_once, row.complete) == (10, 2, True)
    assert row.end_s == row.end_p90_s == pytest.approx(60 + 5 * 100)
    assert row.dollars == pytest.approx(2 * (560 + 60) / 3600)
    assert row.worth == worth(10, 2) < worth(100, 2) < worth(100, 1) == 1.0


def test_trials_fit_until_the_deadline_and_into_the_budget() -> None:
    by_time = Planner(Wanted(trials=99, by_s=60 + 350.0), Fixed(100.0), FAST).row(G5, 2)
    assert by_time is not None
    assert by_time.trials == 6
    # 60 s boot, 3 trials, and a minute to end the nodes, which both cost.
    exact = 2 * (60 + 300 + 60) / 3600
    for budget, trials in ((exact + 1e-6, 6), (exact - 1e-3, 4)):
        row = Planner(Wanted(trials=99, budget=budget), Fixed(100.0), FAST).row(G5, 2)
        assert row is not None
        assert row.trials == trials
        assert row.dollars_p90 <= budget
    assert Planner(Wanted(by_s=100.0), Fixed(100.0), FAST).row(G5, 2) is None


def test_gpus_speed_and_limits_decide_how_many_run_at_once() -> None:
    offer = NodeOffer(type="big", dollars=4.0, gpus=4.0, speed=2.0)
    row = Planner(Wanted(trials=8), Fixed(100.0), FAST).row(offer, 1)
    assert row is not None
    assert (row.at_once, row.end_s) == (4, 60 + 2 * 50)
    for gpus, at_once in ((2.0, 2), (0.5, 8), (0.0, 1)):
        row = Planner(Wanted(trials=8, gpus=gpus), Fixed(100.0), FAST).row(offer, 1)
        assert row is not None
        assert row.at_once == at_once
    limited = Planner(Wanted(trials=99, at_once=5), Fixed(100.0), FAST)
    assert [row.nodes for row in limited.rows([offer], (1, 2, 3))] == [1, 2], "a third is idle"
    assert Planner(Wanted(gpus=8.0), Fixed(100.0), FAST).rows([offer], (1, 2)) == []


def test_the_master_of_spot_nodes_costs_its_own_price() -> None:
    (on_demand, spot) = sorted(
        offers_of(
            {
                "offers": [
                    {"type": "a", "gpus": 1, "on_demand": 1.0, "spot": 0.3, "spot_p95": 0.4},
                    {"type": "a", "gpus": 1, "on_demand": 1.0, "spot": 0.6, "spot_p95": None},
                    {"type": "b", "gpus": 1, "on_demand": None, "spot": None},
                ]
            }
        ),
        key=lambda offer: offer.spot,
    )
    assert (on_demand.dollars, spot.dollars, spot.label) == (1.0, 0.4, "a spot")
    assert on_demand.per_hour(3) == 3.0
    assert spot.per_hour(3) == pytest.approx(1.8)
    planner = Planner(Wanted(master=0.1), Fixed(1.0), FAST)
    assert planner.per_hour(spot, 3) == pytest.approx(1.3)


def test_lost_spot_nodes_end_later() -> None:
    losing = Delays(boot=(60.0, 60.0), gap_s=0.0, losses_per_day=86400 / 200)
    spot = NodeOffer(type="a", dollars=1.0, spot=True)
    safe = Planner(Wanted(trials=50), Fixed(100.0), losing).row(G5, 1)
    lost = Planner(Wanted(trials=50), Fixed(100.0), losing).row(spot, 1)
    assert safe is not None
    assert lost is not None
    share = 1 - np.exp(-0.5)
    expected = 60 + 50 * (100 + share * (50 + 60))
    assert safe.end_s == pytest.approx(5060)
    assert lost.end_s == pytest.approx(expected, rel=0.03)


def test_few_trials_say_less_than_many() -> None:
    random = np.random.default_rng(1)
    logs = np.linspace(-1, 1, 200)
    spreads = [
        float(np.std(LearnedDurations(list(np.exp(some))).draw(random, 400, 100).mean(axis=1)))
        for some in (logs[::50], logs)
    ]
    assert spreads[0] > 1.5 * spreads[1]


def test_durations_of_two_kinds_stay_two_kinds() -> None:
    seen = [10.0] * 60 + [1000.0] * 40
    drawn = LearnedDurations(seen).draw(np.random.default_rng(1), 400, 50)
    assert np.mean((drawn > 15) & (drawn < 500)) < 0.1
    assert np.median(drawn.mean(axis=1)) == pytest.approx(np.mean(seen), rel=0.15)


def test_failed_trials_take_time_and_do_not_count() -> None:
    random = np.random.default_rng(1)
    drawn = LearnedDurations([100.0] * 50, [60.0] * 50).draw(random, 400, 100)
    assert np.median(drawn.mean(axis=1)) == pytest.approx(160, rel=0.1)


def test_a_guess_has_four_of_five_trials_in_its_range() -> None:
    drawn = GuessedDurations(90.0, 200.0).draw(np.random.default_rng(1), 400, 100)
    assert np.mean((drawn > 90) & (drawn < 200)) == pytest.approx(0.8, abs=0.03)


def test_the_p90_of_a_plan_holds_in_simulated_searches() -> None:
    found = _benchmark().searches(10)
    holds = [row["holds"] for row in found]
    assert len(holds) > 45
    assert np.mean(holds) >= 0.85
    assert np.mean([row["used"] for row in found]) > 0.5, "the plan is not merely careful"


def _benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("plan_calibration", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclass looks there
    spec.loader.exec_module(module)
    return module


def test_the_nodes_of_the_bill_are_offers(tmp_path: Path) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    runs = [
        NodeRun(
            id=f"i-{n}", alias=f"n{n}", type=kind, zone="a", spot=False, start=start, seen=start,
            end=end,
        )
        for n, (kind, end) in enumerate([("a", None), ("a", None), ("b", start), ("c", None)])
    ]  # fmt: skip
    price = Price(type="a", zone="", time=start, dollars=2.0)
    bill = Bill(cluster="x", region="r", updated=start, runs=tuple(runs), prices=(price,))
    path = tmp_path / "bill.json"
    assert bill_offers(path) == []
    path.write_text(bill_text(bill))
    path.chmod(0o644)
    assert bill_offers(path) == [NodeOffer(type="a", dollars=2.0)]
    path.chmod(0o666)
    with pytest.raises(InputError, match="another user"):
        bill_offers(path)


@pytest.fixture
def starcluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A command starcluster that prints a file."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program, output = folder / "starcluster", tmp_path / "output"
    program.write_text(f'#!/bin/sh\necho "no credentials" >&2\ncat "{output}"\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return output


def test_prices_come_from_starcluster_or_its_file(starcluster: Path, tmp_path: Path) -> None:
    row = {"type": "a", "gpus": 1, "on_demand": 1.0, "spot": None, "spot_p95": None}
    starcluster.write_text(json.dumps({"offers": [row]}))
    assert ask_starcluster() == read_prices(starcluster) == [NodeOffer(type="a", dollars=1.0)]
    starcluster.write_text("")
    with pytest.raises(SpearmintError, match="no credentials") as caught:
        ask_starcluster()
    assert "--price" in caught.value.fix
    with pytest.raises(InputError, match=str(starcluster)):
        read_prices(starcluster)
    with pytest.raises(InputError, match="none"):
        read_prices(tmp_path / "none")


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "a; reboot"},
        {"type": "a\x1b[31m"},
        {"type": 1},
        {"gpus": None},
        {"on_demand": -1},
        {"on_demand": float("nan")},
        {"spot": "cheap"},
    ],
    ids=str,
)
def test_a_wrong_file_of_prices_is_refused(tmp_path: Path, wrong: dict[str, object]) -> None:
    row = {"type": "a", "gpus": 1, "on_demand": 1.0, "spot": 0.5, "spot_p95": None}
    (tmp_path / "prices").write_text(json.dumps({"offers": [row | wrong]}))
    with pytest.raises(InputError, match="prices is not the output"):
        read_prices(tmp_path / "prices")


def test_prices_of_a_file_can_be_text(tmp_path: Path) -> None:
    row = {"type": "a", "gpus": "1", "on_demand": "1.0", "spot": "0.5", "spot_p95": "0.6"}
    (tmp_path / "prices").write_text(json.dumps({"offers": [row]}))
    assert [each.per_hour(2) for each in read_prices(tmp_path / "prices")] == [1.6, 2.0]


def test_plans_with_tiny_parts_of_a_gpu_and_endless_trials_stay_small() -> None:
    row = Planner(Wanted(trials=8, gpus=1e-9), Fixed(100.0), FAST).row(G5, 1)
    assert row is not None
    assert row.at_once == 8
    assert Planner(Wanted(trials=8), Fixed(1e10), FAST).row(G5, 1) is None


PRICES = ("--price=g5.xlarge=1.006", "--price=g5.12xlarge=5.67:4")


def test_a_plan_before_the_first_trial(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment()
    done = experiment.command("plan", *PRICES)
    assert done.returncode == 2
    assert "--trial-seconds" in done.stderr
    options = ("--by=6h", "--budget=20", "--trial-seconds=90..200", "--max-finished-jobs=100")
    done = experiment.command("plan", *PRICES, *options, "--gpus=0.5", "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    plans = data["plans"]
    assert {plan["type"] for plan in plans} == {"g5.xlarge", "g5.12xlarge"}
    assert all(plan["dollars_p90"] <= 20 for plan in plans)
    assert all(plan["end_p90"] <= data["by"] for plan in plans)
    assert all(plan["end_s"] < plan["end_p90_s"] for plan in plans)
    assert plans[0]["trials"] == 100
    assert "--max-finished-jobs=100 --budget=20 --gpus=0.5" in plans[0]["command"][-1]
    shown = experiment.command("plan", *PRICES, *options, "--gpus=0.5", "--top=2")
    assert shown.returncode == 0
    assert f"--top={len(plans)}" in shown.stdout
    assert plans[0]["command"][0] in shown.stdout


@pytest.mark.parametrize(
    ("ended", "new", "expected"),
    [([0], 7, 7), ([2, 2], 6, 5), ([100, 0, 0], 40, 20), ([0, 0, 3], 9, 4), ([0, 0, 100], 1, 0)],
)
def test_regions_that_have_ended_get_no_more_trials(
    ended: list[int], new: int, expected: int
) -> None:
    assert of_each(ended, new) == expected


def test_durations_are_learned_from_the_trials_of_all_regions(
    make_experiment: MakeExperiment,
) -> None:
    config = 'language: PYTHON\nname: "trial"\nvariable { name: "x" type: FLOAT min: 0 max: 1 }\n'
    experiment = make_experiment(config=config + 'region: "de"\nregion: "us"\n')
    assert experiment.run("--max-finished-jobs=2").returncode == 0
    done = experiment.command("plan", *PRICES, "--max-finished-jobs=5", "--nodes=1,2", "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert (data["regions"], data["finished"]) == (2, 4)
    assert {plan["trials"] for plan in data["plans"]} == {6}
    assert {plan["nodes"] for plan in data["plans"]} == {1, 2}
    done = experiment.command("plan", *PRICES, "--max-finished-jobs=2")
    assert done.returncode == 2
    assert "--max-finished-jobs" in done.stderr


@pytest.mark.parametrize(
    ("url", "is_printed"),
    [
        ("sqlite:////tmp/no/such.db?timeout=9", True),
        ("sqlite:////tmp/no/such.db?password=geheim", False),
    ],
)
def test_the_command_has_the_storage_but_no_password(
    make_experiment: MakeExperiment, url: str, is_printed: bool
) -> None:
    experiment = make_experiment()
    options = [*PRICES, "--trial-seconds=100", "--max-finished-jobs=2", "--storage", url]
    done = commands.spearmint("plan", *options, experiment.config)
    assert done.returncode == 0, done.stderr
    assert (f"--storage={url}" in done.stdout.replace("'", "")) is is_printed
    assert "geheim" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("options", "code", "fact"),
    [
        (["--by=1s"], 1, "--by"),
        (["--budget=0.001"], 1, "--budget"),
        (["--by=soon"], 2, "soon"),
        (["--nodes=1,x"], 2, "1,x"),
        (["--boot=x"], 2, "--boot"),
        (["--type=p5"], 2, r"g5.xlarge"),
        (["--speed=p5=2"], 2, "p5"),
        (["--speed=g5.xlarge=0"], 2, "g5.xlarge=0"),
        (["--gpus=8"], 2, "8"),
        (["--max-finished-jobs=30000"], 2, "--max-finished-jobs"),
        (["--prices=none"], 2, "--price"),
        (["--gpus=nan"], 2, "--gpus"),
        (["--budget=nan"], 2, "--budget"),
    ],
)
def test_what_cannot_be_planned_is_named(
    make_experiment: MakeExperiment, options: list[str], code: int, fact: str
) -> None:
    experiment = make_experiment()
    done = commands.spearmint("plan", *PRICES, "--trial-seconds=100", *options, experiment.config)
    assert done.returncode == code, done.stdout + done.stderr
    assert fact in done.stderr


def test_trials_on_several_hosts_have_no_plan(make_experiment: MakeExperiment) -> None:
    """Each would be counted as a trial on one host, at a part of its price."""
    experiment = make_experiment(config=f"{ONE_FLOAT}resources {{ nodes: 2 }}\n")
    done = commands.spearmint("plan", *PRICES, "--trial-seconds=100", experiment.config)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "nodes: 2" in done.stderr


def test_the_trials_of_a_job_teach_each_other_nothing() -> None:
    alone, together = (
        Planner(Wanted(trials=64, batch=batch), Fixed(100.0), FAST).row(G5, 2) for batch in (1, 8)
    )
    assert alone is not None
    assert together is not None
    assert together.worth < alone.worth
    assert together.end_s == alone.end_s, "seconds of a trial are its share of those of the job"
