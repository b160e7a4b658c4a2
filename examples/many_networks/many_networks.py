"""Search the settings of a network for digits; eight networks train at once on one GPU or CPU."""

import pycuda_nn as nn
import spearmint
from pycuda_nn.spearmint_trials import run_trials

SPACE = {"lr": (1e-4, 1e-1, "log"), "l2": (1e-6, 1e-2, "log"), "dropout": (0.0, 0.6)}


def config(params):
    """Return the settings for a point of the space."""
    return nn.TrainConfig(hidden=(64,), epochs=15, **params)


train, valid, test = nn.split(nn.load_data("digits"), seed=0)
with spearmint.Search(SPACE, directory="many_networks", pruner="median") as search:
    run_trials(search, config, train, valid, trials=32, batch=8, folder="many_networks/networks")
    best = search.best
print(f"best validation error {best.value:.3f} at {dict(best.params)}")
final = nn.train(config(best.params), nn.concat(train, valid))
print(f"test error {nn.evaluate(final.model, test).error:.3f}")
