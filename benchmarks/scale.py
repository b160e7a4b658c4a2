"""Measure the controller of a large search: 1,000 running trials, 100,000 finished ones.

    python benchmarks/scale.py [--finished 100000] [--running 1000] [--json FILE] [--rst FILE]
    python benchmarks/scale.py --storage postgresql+psycopg://HOST/DATABASE ...

Trials are stored by the calls of the controller, for jobs that exist only as rows: the drivers are
measured elsewhere. Only Ctrl-C is measured with the command, and stand-ins for the commands of a
queue. Each figure comes from a new process. Figures of a trial are processor seconds;
others are wall seconds.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from scale_stop import stop_seconds
from sqlalchemy import insert

from spearmint.choosers import make_chooser
from spearmint.config.reader import load_experiment
from spearmint.controller.limits import StudyLimits
from spearmint.controller.proposals import Proposals
from spearmint.controller.tally import Tally
from spearmint.model import Result, TrialState
from spearmint.store.opening import delete_study, open_study, read_studies
from spearmint.store.study import Study

CONFIG = """language: PYTHON
name: "scale"
variable { name: "X" type: FLOAT size: 6 min: 0 max: 1 }
"""
BATCH = 50
GOALS = {
    "cpu_ms_a_trial": ("CPU of a trial: propose, store, collect (ms)", 30.0),
    "status_s": ("Status (s)", 1.0),
    "best_s": ("Best trial (s)", 1.0),
    "open_s": ("Open, and count the trials (s)", 5.0),
    "proposal_first_s": ("First proposals after opening (s)", None),
    "memory_mib": ("Memory after the first proposals (MiB)", 300.0),
    "batch_ms_a_proposal": ("Proposal in batches of 50 at n = 1,000 (ms)", 60.0),
    "freed_s": ("Proposals for 100 places freed at once (s)", 3.0),
    "stop_s": ("From Ctrl-C to the end, while all trials run (s)", 1.0),
    "stop_starting_s": ("From Ctrl-C to the end, while trials start (s)", 1.0),
    "delete_s": ("Delete the trials (s)", None),
}


def main() -> None:
    """Fill the storage, measure, print and write the figures."""
    chosen = options()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.pb").write_text(CONFIG)
        figures: dict[str, Any] = {}
        for n in (1000, chosen.finished):
            url = chosen.storage or f"sqlite:///{folder}/{n}.db"
            in_process(fill, folder, url, n, chosen.running)
            parts = (batches,) if n == 1000 and n != chosen.finished else (look, start, collect)
            for part in parts:
                figures |= in_process(part, folder, url, n, chosen.running)
            figures |= in_process(delete, folder, url, n, chosen.running)
        figures |= in_process(stop, folder, chosen.storage, chosen.finished, chosen.running)
    about = {
        "storage": (chosen.storage or "sqlite").partition(":")[0],
        "finished": chosen.finished,
        "running": chosen.running,
        "python": platform.python_version(),
        "optuna": optuna.__version__,
        "cores": os.cpu_count(),
    }
    rows = [(label, figures[key], goal) for key, (label, goal) in GOALS.items()]
    for label, figure, goal in rows:
        missed = "" if goal is None or figure <= goal else "  missed"
        print(f"{label:50}{figure:10.3g}{goal if goal is not None else '-':>10}{missed}")
    if chosen.json:
        chosen.json.write_text(json.dumps({"about": about, "figures": figures}, indent=1) + "\n")
    if chosen.rst:
        chosen.rst.write_text(rst(rows, about))


def in_process(part: Callable[..., dict[str, float]], *arguments: Any) -> dict[str, float]:
    """Return what ``part`` measures in a new process."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(part, *arguments).result()


def opened(folder: str, url: str) -> Study:
    """Return the study, with the default chooser."""
    study = open_study(load_experiment(Path(folder) / "config.pb"), url)
    study.use(make_chooser("GPEIOptChooser", {}, seed=1))
    return study


def fill(folder: str, url: str, finished: int, running: int) -> dict[str, float]:
    """Store finished and running trials by bulk inserts."""
    from optuna.distributions import distribution_to_json
    from optuna.storages._rdb import models
    from optuna.trial import TrialState as Stored

    study = opened(folder, url)
    study_id = study._study._study_id
    points = np.random.default_rng(0).random((finished + running, 6))
    kinds = {name: distribution_to_json(d) for name, d in study._distributions.items()}
    row, noon = models.TrialModel.__table__.c, datetime(2026, 1, 1, 12)
    values, kind = models.TrialValueModel, models.TrialValueModel.TrialValueType.FINITE
    with study._storage._backend.engine.begin() as connection:
        first = (connection.execute(optuna_max(row.trial_id)).scalar() or 0) + 1
        for start in range(0, len(points), 10_000):
            some = range(start, min(start + 10_000, len(points)))
            done = [i for i in some if i < finished]

            def add(model: Any, rows: list[dict[str, Any]]) -> None:
                if rows:
                    connection.execute(insert(model.__table__), rows)

            states = (Stored.RUNNING, Stored.COMPLETE)
            add(
                models.TrialModel,
                [
                    {"trial_id": first + i, "number": i, "study_id": study_id,
                     "state": states[i < finished], "datetime_start": noon,
                     "datetime_complete": noon if i < finished else None}
                    for i in some
                ],
            )  # fmt: skip
            add(
                models.TrialParamModel,
                [
                    {"trial_id": first + i, "param_name": name, "param_value": float(x),
                     "distribution_json": kinds[name]}
                    for i in some for name, x in zip(kinds, points[i], strict=True)
                ],
            )  # fmt: skip
            add(
                values,
                [
                    {"trial_id": first + i, "objective": 0, "value": value_of(points[i]),
                     "value_type": kind}
                    for i in done
                ],
            )  # fmt: skip
            add(
                models.TrialUserAttributeModel,
                [{"trial_id": first + i, "key": "seconds", "value_json": "60.0"} for i in done],
            )
        if connection.engine.name == "postgresql":
            for table in ("trials", "trial_params", "trial_values", "trial_user_attributes"):
                renumber(connection, table)
                connection.exec_driver_sql(f"ANALYZE {table}")  # as autovacuum does in a minute
    return {}


def optuna_max(column: Any) -> Any:
    """Return a query of the largest value of ``column``."""
    from sqlalchemy import func, select

    return select(func.max(column))


def renumber(connection: Any, table: str) -> None:
    """Let the numbers of new rows of ``table`` start after the inserted ones."""
    key = {"trials": "trial_id", "trial_params": "param_id", "trial_values": "trial_value_id",
           "trial_user_attributes": "trial_user_attribute_id"}[table]  # fmt: skip
    connection.exec_driver_sql(
        f"SELECT setval(pg_get_serial_sequence('{table}', '{key}'), "  # noqa: S608
        f"(SELECT max({key}) FROM {table}))"
    )


def value_of(point: Any) -> float:
    """Return a smooth function of a point."""
    return float(((point - 0.3) ** 2).sum())


def look(folder: str, url: str, finished: int, running: int) -> dict[str, float]:
    """Time the queries of ``status`` and ``best``."""
    study = read_studies([load_experiment(Path(folder) / "config.pb")], url)[0]
    study.has_queued()  # connects
    start = time.perf_counter()
    counts = study.counts()
    study.seconds(), study.best(5), study.last(TrialState.RUNNING)
    middle = time.perf_counter()
    study.best()
    end = time.perf_counter()
    if (counts[TrialState.COMPLETE], counts[TrialState.RUNNING]) != (finished, running):
        raise RuntimeError(f"wrong counts: {counts}")
    return {"status_s": middle - start, "best_s": end - middle}


def start(folder: str, url: str, finished: int, running: int) -> dict[str, float]:
    """Time the start of a controller, and its first batch of proposals."""
    begin = time.perf_counter()
    study = opened(folder, url)
    study.abandon_unproposed()
    Tally(limits=StudyLimits()).restore(study)
    study.running()
    middle = time.perf_counter()
    proposals = Proposals(study)
    for _ in range(4):
        proposals.ask(4)
    end = time.perf_counter()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"open_s": middle - begin, "proposal_first_s": end - middle, "memory_mib": memory}


def collect(folder: str, url: str, finished: int, running: int) -> dict[str, float]:
    """Time rounds of 100 results, each with 100 new trials; and 100 places freed at once."""
    study = opened(folder, url)
    known = study.running()
    proposals = Proposals(study)
    proposals.ask(BATCH)
    rounds, freed, clock = 3, 0.0, time.process_time()
    for _ in range(rounds):
        done, known = known[:100], known[100:]
        while proposals.prepare(100):
            pass
        with study.one_transaction():
            for trial in done:
                study.complete(
                    trial, Result(value=value_of(np.array(trial.params["X"])), seconds=60.0)
                )
        begin = time.perf_counter()
        known += [proposals.ask(100 - i) for i in range(100)]
        freed = max(freed, time.perf_counter() - begin)
    cpu = (time.process_time() - clock) / (100 * rounds)
    return {"cpu_ms_a_trial": 1000 * cpu, "freed_s": freed}


def batches(folder: str, url: str, finished: int, running: int) -> dict[str, float]:
    """Time a batch of proposals at n = 1,000, without running trials but those of the batch."""
    study = opened(folder, url)._study
    finished_only = optuna.create_study(sampler=study.sampler)
    done = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
    finished_only.add_trials(done)
    chooser, space = study.sampler, done[0].distributions
    list(islice(chooser.ask_many(finished_only, space), 2))  # imports
    clock = time.process_time()
    list(islice(chooser.ask_many(finished_only, space), BATCH))
    return {"batch_ms_a_proposal": 1000 * (time.process_time() - clock) / BATCH}


def delete(folder: str, url: str, finished: int, running: int) -> dict[str, float]:
    """Time the deletion of the study."""
    begin = time.perf_counter()
    delete_study("scale", url)
    return {"delete_s": time.perf_counter() - begin}


def stop(folder: str, url: str | None, finished: int, running: int) -> dict[str, float]:
    """Time Ctrl-C of the command, whose trials run in a queue."""
    place = Path(folder) / "stop"
    place.mkdir()
    (place / "config.pb").write_text(CONFIG)
    url = url or f"sqlite:///{place}/spearmint.db"
    fill(str(place), url, finished, 0)
    try:
        return stop_seconds(place, url, running)
    finally:
        delete_study("scale", url)


def rst(rows: list[tuple[str, float, float | None]], about: dict[str, Any]) -> str:
    """Return the table as reStructuredText."""
    title = (
        f"{about['storage']}, {about['finished']:,} finished and {about['running']:,} running "
        f"trials, {about['cores']} cores"
    )
    lines = [".. Written by benchmarks/scale.py --rst; do not edit.", "",
             f".. list-table:: {title}", "   :header-rows: 1", "",
             "   * - Figure", "     - Measured", "     - Goal", "     - Met"]  # fmt: skip
    for label, figure, goal in rows:
        met = "-" if goal is None else "yes" if figure <= goal else "no"
        wanted = "-" if goal is None else f"{goal:g}"
        cells = (label, f"{figure:.3g}", wanted, met)
        lines += [f"   * - {cells[0]}", *(f"     - {cell}" for cell in cells[1:])]
    return "\n".join(lines) + "\n"


def options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--finished", type=int, default=100_000, help="Finished trials. Default: 100000.")
    add("--running", type=int, default=1000, help="Running trials. Default: 1000.")
    add("--storage", metavar="URL", help="An empty database. Default: SQLite.")
    add("--json", type=Path, metavar="FILE", help="Write the figures as JSON.")
    add("--rst", type=Path, metavar="FILE", help="Write the table as reStructuredText.")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
