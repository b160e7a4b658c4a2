"""One trial: train a model on pumps.csv with the parameters of the trial and return its error."""

import csv
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import cross_val_score

NUMBERS = ("flow", "pressure", "temperature", "hours")
MODELS = ("A", "B", "C")
TEST_ROWS = 300  # the last rows: no trial sees them


def load():
    """Return the input columns as numbers (empty cells as NaN) and the energy to predict."""
    with Path(__file__).with_name("pumps.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    x = [[float(row[name] or "nan") for name in NUMBERS] + [MODELS.index(row["model"])]
         for row in table]  # fmt: skip
    return np.array(x), np.array([float(row["energy"]) for row in table])


def model(params):
    """Return an untrained model with the given parameters."""
    return HistGradientBoostingRegressor(
        learning_rate=float(params["learning_rate"][0]),
        max_leaf_nodes=int(params["leaves"][0]),
        min_samples_leaf=int(params["min_samples"][0]),
        loss=params["loss"][0],
        categorical_features=[len(NUMBERS)],
        max_iter=100,
        random_state=0,
    )


def main(job_id, params):
    """Return the mean absolute error in kWh, by five-fold cross-validation: lower is better."""
    x, y = load()
    x, y = x[:-TEST_ROWS], y[:-TEST_ROWS]
    scores = cross_val_score(model(params), x, y, cv=5, scoring="neg_mean_absolute_error")
    return -scores.mean()
