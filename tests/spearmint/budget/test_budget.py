"""The budget of a search: bills, learned durations, and a hundred simulated searches."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from spearmint.budget import BillMeter, Budget, Durations, Ending, Reading, Running, started_at
from spearmint.budget.meter import reading
from spearmint.drivers import Job
from spearmint.errors import InputError
from starmint.bill import Bill, Ledger, NodeRun, Price, bill_text
from tests.spearmint.conftest import MakeExperiment
from tests.spearmint.fakes import FakeDriver

START = datetime(2026, 1, 1, tzinfo=UTC)
CHECK_S = 60.0  # of the balancer
STEP_S = 15.0  # of the controller
KINDS = ("g5.xlarge", "g4dn.xlarge")


@dataclass
class Machine:
    """A node of a simulated cluster; times in seconds."""

    run: NodeRun
    ready: float
    end: float | None = None
    known_end: float | None = None


@dataclass
class Cluster:
    """A simulated cluster: nodes boot, are lost and replaced; spot prices jump.

    Its ``bill`` is what the balancer has written at its last check.
    """

    chance: random.Random
    size: int
    now: float = 0.0
    machines: list[Machine] = field(default_factory=list)
    prices: list[Price] = field(default_factory=list)
    bill: Bill = field(default_factory=lambda: Bill(cluster="gpu", region="r", updated=START))
    _read: tuple[float, Reading] | None = None

    def __post_init__(self) -> None:
        for kind, dollars in zip(KINDS, (1.0, 0.5), strict=True):
            self.prices.append(Price(type=kind, zone="", time=START, dollars=dollars))
        self._jump()
        self._launch("master", spot=False)
        for number in range(1, self.size):
            self._launch(f"node{number:03d}", spot=self.chance.random() < 0.8)
        self.check()

    @property
    def time(self) -> datetime:
        return START + timedelta(seconds=self.now)

    def _launch(self, alias: str, *, spot: bool) -> None:
        run = NodeRun(
            id=f"i-{len(self.machines)}",
            alias=alias,
            type=self.chance.choice(KINDS),
            zone="a",
            spot=spot,
            start=self.time,
            seen=self.time,
        )
        self.machines.append(Machine(run, ready=self.now + self.chance.uniform(60, 400)))

    def _jump(self) -> None:
        for kind, most in zip(KINDS, (1.0, 0.5), strict=True):
            dollars = self.chance.uniform(0.2, 1.0) * most
            self.prices.append(Price(type=kind, zone="a", time=self.time, dollars=dollars))

    def step(self) -> list[Machine]:
        """Let time pass; return the nodes that were lost."""
        self.now += STEP_S
        if self.chance.random() < STEP_S / 1800:
            self._jump()
        lost = [m for m in self.up() if m.run.spot and self.chance.random() < STEP_S / 7200]
        for machine in lost:
            machine.end = self.now
        if self.now % CHECK_S == 0:
            self.check()
        return lost

    def check(self) -> None:
        """Write the bill, and replace lost nodes, as the balancer does."""
        lost = [m for m in self.machines if m.end is not None and m.known_end is None]
        for machine in lost:
            machine.known_end = machine.end
        runs = tuple(self._seen(machine) for machine in self.machines)
        self.bill = replace(self.bill, updated=self.time, runs=runs, prices=tuple(self.prices))
        for machine in lost:
            self._launch(machine.run.alias, spot=True)

    def _seen(self, machine: Machine) -> NodeRun:
        end = machine.known_end
        ended = None if end is None else START + timedelta(seconds=end)
        return replace(machine.run, seen=ended or self.time, end=ended)

    def up(self) -> list[Machine]:
        """Return the nodes that cost."""
        return [machine for machine in self.machines if machine.end is None]

    def read(self) -> Reading:
        """Return what the controller reads."""
        if self._read is None or self._read[0] != self.now:
            self._read = (self.now, reading(self.bill, START, self.time))
        return self._read[1]

    def terminate(self) -> None:
        """End all nodes, which takes AWS some seconds."""
        self.now += self.chance.uniform(5, 45)
        for machine in self.up():
            machine.end = self.now

    def dollars(self) -> float:
        """Return what AWS bills at the end."""
        runs = tuple(
            replace(m.run, end=START + timedelta(seconds=m.end or 0.0)) for m in self.machines
        )
        bill = replace(self.bill, runs=runs, prices=tuple(self.prices))
        return Ledger(bill, self.time).total().dollars

    def node_minute(self) -> float:
        """Return the highest price of a minute of all nodes."""
        return sum({"g5.xlarge": 1.0, "g4dn.xlarge": 0.5}[m.run.type] for m in self.up()) / 60


@dataclass
class SimulatedTrial:
    """A trial on a node; ``seconds`` is how long it takes."""

    node: Machine
    begun: float
    seconds: float


def search(seed: int) -> tuple[float, float, float]:
    """Simulate a search; return its budget, its dollars, and the price of a node-minute a node."""
    chance = random.Random(seed)
    cluster = Cluster(chance, size=chance.randint(2, 9))
    limit = chance.uniform(2, 15)
    budget = Budget(limit, cluster, polling_s=STEP_S)
    durations, running = Durations(), list[SimulatedTrial]()
    middle, spread = chance.uniform(120, 2400), chance.uniform(0.05, 0.8)
    while cluster.now < 20 * 86400:
        cluster.step()
        for trial in list(running):
            if trial.node.end is not None:
                running.remove(trial)  # lost: a retry has another duration
            elif cluster.now - trial.begun >= trial.seconds:
                running.remove(trial)
                durations.add(trial.seconds)
        if budget.is_spent():
            break
        refused = False
        taken = {id(trial.node) for trial in running}
        for node in cluster.up():
            if node.ready <= cluster.now and id(node) not in taken:
                alive = [Running(cluster.now - t.begun, durations) for t in running]
                refused = bool(budget.refusal(durations, alive))
                if not refused:
                    seconds = middle * chance.lognormvariate(0, spread)
                    running.append(SimulatedTrial(node, cluster.now, seconds))
        if refused and not running:
            break
    minute = cluster.node_minute()
    cluster.terminate()
    return limit, cluster.dollars(), minute


def test_simulated_searches_with_lost_nodes_stay_within_their_budget() -> None:
    results = [search(seed) for seed in range(100)]
    over = [
        seed for seed, (limit, dollars, minute) in enumerate(results) if dollars > limit + minute
    ]
    assert over == []
    used = sorted(dollars / limit for limit, dollars, _ in results)
    assert used[50] > 0.8, "the budget is used, not only kept"


class FixedMeter:
    """Tells given dollars."""

    def __init__(self, *spent: float, per_hour: float = 3600.0, doubt: str = "") -> None:
        self.spent, self.per_hour, self.doubt = list(spent), per_hour, doubt

    def read(self) -> Reading:
        spent = self.spent.pop(0) if len(self.spent) > 1 else self.spent[0]
        return Reading(spent=spent, per_hour=self.per_hour, doubt=self.doubt)


def test_a_trial_starts_only_if_the_dollars_last_until_it_and_all_others_end() -> None:
    durations = Durations()
    for _ in range(10):
        durations.add(100.0)
    budget = Budget(1000.0, FixedMeter(837.0))  # a dollar a second, 63 s to end
    assert budget.refusal(durations, []) == ""
    assert budget.refusal(durations, [], and_final=True)
    assert "$837" in Budget(999.0, budget.meter).refusal(durations, [])
    slow = Durations()
    slow.add(200.0)  # 300 s are expected
    assert budget.refusal(durations, [Running(250.0, slow)]) == ""
    assert budget.refusal(durations, [Running(150.0, slow)])
    assert budget.refusal(Durations(), [Running(101.0, Durations())]), "as long as those that run"
    assert Budget(9e9, FixedMeter(0.0, doubt="no price")).refusal(durations, []) == "no price"


def test_a_search_must_end_while_dollars_are_left_to_end_it() -> None:
    assert Budget(1000.0, FixedMeter(937.0)).is_spent() is None
    assert Budget(1000.0, FixedMeter(937.1)).is_spent() is not None


def test_durations_are_learned() -> None:
    durations = Durations()
    assert durations.longest() is None
    durations.known = 10.0
    assert durations.longest() == 15.0
    for seconds in range(1, 101):
        durations.add(float(seconds))
    assert durations.longest() == 96.0


def test_a_budget_ends_the_loop_when_no_trial_fits(make_loop) -> None:
    loop = make_loop(FakeDriver(), finished=99)
    loop.controller.budget = Budget(1000.0, FixedMeter(0.0, 0.0, 0.0, 0.0, 990.0, per_hour=3600.0))
    figures = loop.run()
    assert (figures.complete, figures.running) == (2, 0)
    assert len([line for line in loop.observer.lines if "$1000.00" in line]) == 1


def test_running_trials_are_terminated_before_the_budget_is_exceeded(make_loop) -> None:
    class Slow(FakeDriver):
        def wait(self, jobs: Collection[Job], timeout_s: float) -> None:
            """Nothing ends."""

    driver = Slow()
    loop = make_loop(driver, finished=99, concurrent=2)
    loop.controller.budget = Budget(1000.0, FixedMeter(*[0.0] * 9, 950.0))
    figures = loop.run()
    assert (figures.complete, figures.running) == (0, 0)
    assert len(driver.ended) == len(driver.folders) == 2
    assert re.search(r"\$1000\.00 .*\$950\.00", loop.observer.lines[-1])
    assert len(loop.study.running()) == 2, "a rerun restarts them"


def bill(**changes: object) -> Bill:
    run = NodeRun(
        id="i-1",
        alias="master",
        type="m5.large",
        zone="a",
        spot=False,
        start=START,
        seen=START,
    )
    price = Price(type="m5.large", zone="", time=START, dollars=2.0)
    whole = Bill(cluster="gpu", region="eu-west-1", updated=START, runs=(run,), prices=(price,))
    return replace(whole, **changes)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "bill.json"
    path.write_text(bill_text(bill()))
    path.chmod(0o644)
    return path


def test_a_meter_rereads_the_bill_and_keeps_the_last_good_one(file: Path) -> None:
    since = datetime.now(UTC) - timedelta(hours=3)
    meter = BillMeter(file, since)
    assert meter.read().spent == pytest.approx(6.0, abs=0.1)
    double = Price(type="m5.large", zone="", time=START, dollars=4.0)
    file.write_text(bill_text(bill(prices=(double,))))
    os.utime(file, ns=(1, 1))
    assert meter.read().spent == pytest.approx(12.0, abs=0.1)
    file.write_text("{")
    os.utime(file, ns=(2, 2))
    assert meter.read().spent == pytest.approx(12.0, abs=0.1)
    file.unlink()
    assert meter.read().per_hour == 4.0


def test_a_bill_that_cannot_be_used_is_refused(file: Path) -> None:
    now = datetime.now(UTC)
    file.write_text(bill_text(bill(prices=())))
    with pytest.raises(InputError, match=r"m5\.large"):
        BillMeter(file, now)
    file.chmod(0o666)
    with pytest.raises(InputError, match="another user"):
        BillMeter(file, now)
    with pytest.raises(InputError, match="--budget") as caught:
        BillMeter(file.with_name("none"), now)
    assert "--max-cost" in caught.value.fix


def test_a_rerun_continues_the_same_budget(tmp_path: Path) -> None:
    path = tmp_path / "new/budget.json"
    first = started_at(path)
    assert started_at(path) == first
    path.write_text("{}")
    with pytest.raises(InputError, match=str(path)):
        started_at(path)


@pytest.fixture
def starcluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A command starcluster that notes its arguments; listclusters exits with its file status."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program, notes = folder / "starcluster", tmp_path / "calls"
    program.write_text(
        f'#!/bin/sh\necho "$@" >>"{notes}"\n'
        f'[ ! -e "{folder}/fails" ] || {{ echo no >&2; exit 1; }}\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return notes


def test_the_cluster_is_terminated_by_its_own_command(starcluster: Path) -> None:
    said: list[str] = []
    ending = Ending("terminate", bill())
    ending.warn(said.append)
    assert said == []
    assert ending.run(said.append)
    assert starcluster.read_text().splitlines() == [
        "-r eu-west-1 listclusters --json gpu",
        "-r eu-west-1 terminate --confirm gpu",
    ]
    (starcluster.parent / "bin/fails").touch()
    said.clear()
    ending.warn(said.append)
    assert not ending.run(said.append)
    assert len([text for text in said if "starcluster -r eu-west-1 terminate" in text]) == 3


def test_the_command_keeps_a_budget_and_terminates_the_cluster(
    make_experiment: MakeExperiment, file: Path, starcluster: Path
) -> None:
    experiment = make_experiment()
    done = experiment.run(
        "--budget=5", f"--bill={file}", "--then=terminate", "--max-finished-jobs=2"
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^Spent: \$\d\.\d\d of the budget of \$5\.00", done.stdout, re.MULTILINE)
    assert starcluster.read_text().splitlines()[-1] == "-r eu-west-1 terminate --confirm gpu"


def test_a_budget_needs_a_bill_and_nothing_is_begun(
    make_experiment: MakeExperiment, tmp_path: Path
) -> None:
    experiment = make_experiment()
    done = experiment.run("--budget=5", f"--bill={tmp_path}/none")
    assert done.returncode == 2
    assert "starcluster balance --install" in done.stderr
    assert not (experiment.root / "spearmint.db").exists()
    for options in (["--then=terminate"], ["--budget=5", "--then=stop"], ["--budget=0"]):
        assert experiment.run(*options).returncode == 2
