"""Minimize a Python function in four parallel processes; run it a second time to continue."""

import math

import spearmint

SPACE = {
    "lr": (1e-5, 1, "log"),
    "units": range(16, 513),
    "act": ["relu", "tanh"],
}


def train(lr, units, act):
    """Return a made-up loss, which is 0 at lr=0.01, units=200 and act="relu"."""
    return (math.log10(lr) + 2) ** 2 + (units - 200) ** 2 / 1e5 + (act == "tanh")


search = spearmint.Search(SPACE, directory="my_search")
search.minimize(train, trials=30, n_jobs=4)
print(search)
