"""Retrain the best network of the search on train + validation, and test it once."""

from pathlib import Path

from digits import images, network

import pycuda_nn as nn
import spearmint

HERE = Path(__file__).parent


def main():
    """Print the test error of the best trial's network."""
    with spearmint.Search(HERE / "config.pb") as search:
        best = search.best
    if best is None:
        raise SystemExit("No trial is complete. Run: spearmint examples/digits/config.pb")
    train, valid, test = images()
    result = nn.train(network(best.params, seed=1), nn.concat(train, valid))
    metrics = nn.evaluate(result.model, test)
    wrong, seen = round(metrics.error * len(test.y)), len(train.y) + len(valid.y)
    print(f"Trial {best.id} has the lowest validation loss, {best.value:.4f}.")
    print(
        f"Test error of its network, retrained on train + validation ({seen} images): "
        f"{100 * metrics.error:.2f} % ({wrong} of {len(test.y)} images)"
    )


if __name__ == "__main__":
    main()
