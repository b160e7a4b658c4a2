"""Train with the best parameters on all rows except the last 300, and test on those rows."""

import json
import subprocess

import numpy as np
from pumps import TEST_ROWS, load, model

best = json.loads(
    subprocess.run(["spearmint", "best", "--json", "."], capture_output=True, check=True).stdout
)
x, y = load()
trained = model(best["params"]).fit(x[:-TEST_ROWS], y[:-TEST_ROWS])
error = np.abs(trained.predict(x[-TEST_ROWS:]) - y[-TEST_ROWS:]).mean()
print(f"trial {best['id']}: cross-validation {best['value']:.3f} kWh, test {error:.3f} kWh")
