"""Count how often the p90 of a plan of ``spearmint plan`` holds in simulated searches.

    python benchmarks/plan_calibration.py [--searches 1000] [--json FILE]

Each search has its own truth, which the plan does not know: log-normal durations, two kinds
(pruned and complete), a few sizes, or durations that follow a parameter on which the search
settles (up to 40 % slower or faster at the end); up to 20 % of the trials fail. The plan knows the
first 5 to 40 durations, or a guess that is wrong by 15 %. The user picks any of its rows. Then the
search runs event by event: nodes boot, spot nodes are lost and replaced, trials start on free GPUs.
"""

import argparse
import heapq
import json
import random
import statistics
from dataclasses import dataclass
from pathlib import Path

from spearmint.plan import GuessedDurations, LearnedDurations, NodeOffer, Planner, Wanted
from spearmint.plan.schedule import Delays

KINDS = ("lognormal", "two kinds", "sizes", "settles")
NODES = (1, 2, 4, 8, 16, 32)


@dataclass
class Truth:
    """How long trials of a simulated search take."""

    chance: random.Random
    kind: str
    middle: float
    spread: float
    share: float
    trend: float
    failing: float

    def seconds(self, done: float) -> float:
        """Return the seconds of a trial when this share of the search is done."""
        noise = self.chance.lognormvariate(0, 0.1)
        if self.kind == "two kinds":
            short = self.chance.random() < self.share
            return self.middle * noise * (0.2 if short else 1.5)
        if self.kind == "sizes":
            return self.middle * noise * self.chance.choice((0.5, 1.0, 2.0, 4.0))
        if self.kind == "settles":
            free = self.chance.lognormvariate(0, self.spread * (1 - 0.7 * done))
            return self.middle * noise * free * (1 + self.trend * done)
        return self.middle * self.chance.lognormvariate(0, self.spread)

    def trial(self, done: float) -> tuple[float, bool]:
        """Return the seconds of a trial, and whether it fails."""
        fails = self.chance.random() < self.failing
        return self.seconds(done) * (self.chance.random() if fails else 1.0), fails


def truth_of(chance: random.Random, kind: str) -> Truth:
    """Return a truth of this kind."""
    return Truth(
        chance=chance,
        kind=kind,
        middle=chance.uniform(60, 1800),
        spread=chance.uniform(0.1, 0.8),
        share=chance.uniform(0.3, 0.8),
        trend=chance.uniform(-0.4, 0.4),
        failing=chance.choice((0.0, 0.0, 0.05, 0.2)),
    )


def run(truth: Truth, row, per_node: int, delays: Delays, losses: float) -> float:
    """Run a search event by event; return the seconds until its last trial has ended."""
    chance = truth.chance
    gpus = []
    for _ in range(row.nodes):
        ready = boot(chance, delays)
        gpus += [ready] * per_node
    gpus = gpus[: row.at_once]
    heapq.heapify(gpus)
    ended, started = 0, 0
    running: list[tuple[float, bool]] = []  # end and whether it counts
    last = 0.0
    while True:
        # A trial that fails lets another one start.
        while running and (running[0][0] <= gpus[0] or started >= row.trials):
            last, counts = heapq.heappop(running)
            ended += counts
            started -= not counts
            if ended == row.trials:
                return last
        begin = heapq.heappop(gpus)
        seconds, fails = truth.trial(started / row.trials)
        seconds /= row.offer.speed
        end = begin + seconds
        if row.offer.spot and chance.random() < seconds * losses / 86400:
            end += chance.random() * seconds + boot(chance, delays)
        started += 1
        heapq.heappush(running, (end, not fails))
        heapq.heappush(gpus, end + chance.uniform(0.5, 5.0))


def boot(chance: random.Random, delays: Delays) -> float:
    """Return the seconds that a node needs to its first trial."""
    return chance.uniform(*delays.boot)


def search(seed: int, kind: str, *, guessed: bool = False) -> dict | None:
    """Plan and simulate one search; None if nothing fits."""
    chance = random.Random(f"{seed} {kind}")  # noqa: S311
    truth, delays = truth_of(chance, kind), Delays()
    if guessed:
        wrong = chance.lognormvariate(0, 0.15)
        sample = sorted(truth.seconds(0.0) * wrong for _ in range(200))
        model = GuessedDurations(sample[20], sample[180])
        truth.failing = 0.0
    else:
        known = [truth.trial(0.0) for _ in range(chance.randint(5, 40))]
        finished = [seconds for seconds, fails in known if not fails] or [truth.seconds(0.0)]
        model = LearnedDurations(finished, [seconds for seconds, fails in known if fails])
    gpus = chance.choice((1, 1, 2, 4))
    offer = NodeOffer(type="node", dollars=1.0, gpus=gpus, spot=chance.random() < 0.5)
    wanted = Wanted(
        by_s=chance.uniform(2, 12) * 3600,
        budget=chance.uniform(5, 50),
        trials=chance.choice((20, 60, 200, 400)),
    )
    rows = Planner(wanted, model, delays, seed=seed).rows([offer], NODES)
    if not rows:
        return None
    row = chance.choice(rows)
    end = run(truth, row, gpus, delays, delays.losses_per_day * chance.uniform(0.5, 1.5))
    return {
        "kind": "guessed" if guessed else kind,
        "trials": row.trials,
        "holds": end <= row.end_p90_s,
        "in_time": end <= wanted.by_s,
        "in_budget": (end + 60) / 3600 * row.nodes <= wanted.budget,
        "early": end <= row.end_s,
        "used": end / row.end_p90_s,
    }


def searches(count: int) -> list[dict]:
    """Return the results of ``count`` searches of each kind."""
    found = [search(seed, kind) for kind in KINDS for seed in range(count)]
    found += [search(seed, KINDS[seed % len(KINDS)], guessed=True) for seed in range(count)]
    return [each for each in found if each is not None]


def summary(rows: list[dict]) -> dict:
    """Return the shares of searches in which a part of the plan holds."""
    return {
        "searches": len(rows),
        "p90 holds": statistics.mean(row["holds"] for row in rows),
        "p50 holds": statistics.mean(row["early"] for row in rows),
        "in time": statistics.mean(row["in_time"] for row in rows),
        "in budget": statistics.mean(row["in_budget"] for row in rows),
        "median end / p90": statistics.median(row["used"] for row in rows),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=int, default=200, help="of each kind")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = searches(options.searches)
    table = {
        kind: summary([row for row in rows if row["kind"] == kind]) for kind in (*KINDS, "guessed")
    } | {"all": summary(rows)}
    print("durations    searches    p90    p50   time budget    end")
    for kind, found in table.items():
        count, *shares = found.values()
        print(f"{kind:12} {count:8} " + " ".join(f"{share:6.2f}" for share in shares))
    if options.json:
        options.json.write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
