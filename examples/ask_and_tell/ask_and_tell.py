"""Run a search from your own loop, with two pending trials at a time."""

from pathlib import Path

import spearmint

CONFIG = Path(__file__).parent / "config.pb"


def score(params):
    """Return a function of X and power whose maximum is 1.0 at X = (0.5, -1)."""
    x, y = params["X"]
    distance = (x - 0.5) ** 2 + (y + 1.0) ** 2
    return 1.0 / (1.0 + distance ** params["power"][0])


with spearmint.Search(CONFIG, seed=1) as search:
    pending = [search.ask(), search.ask()]
    for _ in range(18):
        trial = pending.pop(0)
        search.tell(trial, score(trial.params))
        pending.append(search.ask())
    for trial in pending:
        search.tell(trial, None, reason="not evaluated")
    print(f"best value {search.best.value:.3f} at {dict(search.best.params)}")
