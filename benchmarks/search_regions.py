"""Compare regions of one search that learn from each other, and the same regions on their own.

    python benchmarks/search_regions.py --seeds 8

The regions are the functions of a family of search_learn.py. They take turns, one trial each, as a
controller with one trial at a time does.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import optuna
from search_learn import FAMILIES, Family, to_earlier

from spearmint.choosers import GPEIOptChooser
from spearmint.transfer import Neighbours

Curves = list[list[float]]  # the best value after each trial, of each region
MARKS = (10, 15, 20, 25, 40)


def run(family: Family, seed: int, trials: int, *, learns: bool) -> Curves:
    """Return the curves of all regions, the target of the family first."""
    functions = [family.target(seed), *family.earlier(seed)]
    choosers = [GPEIOptChooser(seed=1000 * i + seed) for i in range(len(functions))]
    studies = [optuna.create_study(sampler=chooser) for chooser in choosers]
    neighbours, curves = Neighbours(), [[math.inf] for _ in functions]
    for n in range(trials):
        for i, (study, chooser) in enumerate(zip(studies, choosers, strict=True)):
            if learns:
                counts = {str(k): n + (k < i) for k in range(len(studies))}
                chooser.earlier = neighbours.of(
                    str(i), counts, lambda name: to_earlier(studies[int(name)], name)
                )
            trial = study.ask(dict(family.space))
            value = functions[i](trial.params)
            study.tell(trial, value)
            curves[i].append(min(curves[i][-1], value))
    return [curve[1:] for curve in curves]


def report(name: str, alone: Sequence[Curves], learnt: Sequence[Curves], seconds: float) -> None:
    """Print regrets, as shares of that of the first trial, and pairs of regions."""
    marks = [n for n in MARKS if n <= len(alone[0][0])]
    pairs = [(a, b) for x, y in zip(alone, learnt, strict=True) for a, b in zip(x, y, strict=True)]
    floors = [min(a[-1], b[-1]) for a, b in pairs]
    spans = [a[0] - low or 1.0 for (a, _), low in zip(pairs, floors, strict=True)]
    print(f"{name}: {len(pairs)} regions ({seconds:.0f} s)")
    for k, label in enumerate(("alone", "learn")):
        texts = []
        for n in marks:
            share = [
                (p[k][n - 1] - low) / s for p, low, s in zip(pairs, floors, spans, strict=True)
            ]
            texts.append(f"{median(share):.2g} ({max(share):.2g}) at {n}")
        print(f"  {label} {', '.join(texts)}")
    counts = []
    for n in marks:
        gaps = [a[n - 1] - b[n - 1] for a, b in pairs]
        counts.append(f"{sum(g > 0 for g in gaps)}:{sum(g < 0 for g in gaps)} at {n}")
    print(f"  learn better:worse than alone {', '.join(counts)}", flush=True)


def main() -> None:
    """Print the regions of each family."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--trials", type=int, default=25)
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=FAMILIES)
    parser.add_argument("--results", type=Path, help="Continue and store runs in this file.")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    known: dict[str, Curves] = {}
    if given.results and given.results.exists():
        known = json.loads(given.results.read_text())
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    for name in given.families:
        start = time.process_time()
        for seed in seeds:
            for way in ("alone", "learn"):
                key = f"{name}/{way}/{seed}"
                if key not in known:
                    known[key] = run(FAMILIES[name], seed, given.trials, learns=way == "learn")
            if given.results:
                given.results.write_text(json.dumps(known))
        alone, learnt = ([known[f"{name}/{w}/{s}"] for s in seeds] for w in ("alone", "learn"))
        report(name, alone, learnt, time.process_time() - start)


if __name__ == "__main__":
    main()
