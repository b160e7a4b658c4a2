"""Write pumps.csv, an example of a data file: the energy consumption of 1,500 runs of a pump."""

import csv
import random
from pathlib import Path

COLUMNS = ("flow", "pressure", "temperature", "hours", "model", "energy")


def rows(n=1500, seed=1):
    """Yield rows of text; one cell in fifty is empty, as is common in real files."""
    draw = random.Random(seed)  # noqa: S311 - data for a tutorial
    for _ in range(n):
        flow, pressure = draw.uniform(5, 60), draw.uniform(1, 9)
        temperature, hours = draw.gauss(18, 7), draw.expovariate(1 / 4000)
        model = draw.choice(("A", "B", "C"))
        worn = 1 + 0.00004 * hours * {"A": 1, "B": 2, "C": 0.5}[model]
        energy = 0.03 * flow * pressure * worn + 0.004 * (temperature - 20) ** 2
        numbers = (flow, pressure, temperature, hours)
        cells = ["" if draw.random() < 0.02 else f"{number:.2f}" for number in numbers]
        yield [*cells, model, f"{energy + draw.gauss(0, 0.4):.3f}"]


if __name__ == "__main__":
    with Path("pumps.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(rows())
    print("wrote pumps.csv")
