"""Tune, train and promote the models of many regions on several days, on a simulated clock.

    python benchmarks/daily.py [--regions 41] [--trials 3] [--days 2] [--gpus 8] [--json FILE]

Each day at 02:30 it calls the two commands of docs/how_to/daily.rst::

    spearmint --again --then-final --max-finished-jobs=3 DIR
    spearmint promote DIR

The commands, the controller, the database, the trials and the files are real; only the clock is
not: trials sleep for 20 to 60 minutes, which pass at once. The data of each region has another
quality each day, so that some models are promoted and others are kept. Then it checks each region:
one generation a day with all its trials, one final model a day, and a current model that is
complete and never worse.
"""

import argparse
import contextlib
import io
import json
import resource
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from simulated_day import CLOCK

from spearmint.cli.main import cli
from spearmint.models import ModelStore

START = datetime(2026, 11, 25, 2, 30, tzinfo=UTC)
CODE = """
import time
import zlib

import spearmint


def number(*words):
    return zlib.crc32(" ".join(map(str, words)).encode()) % 1000 / 1000


def error(x):
    region, today = spearmint.region(), int(time.time()) // 86400
    return (x - number(region)) ** 2 + 0.05 * number(region, today)


def main(job_id, params):
    x = float(params["x"][0])
    time.sleep(60 * (20 + 40 * x))
    return error(x)


def final(job_id, params, model_dir):
    x = float(params["x"][0])
    time.sleep(3600)
    (model_dir / "x.txt").write_text(str(x))
    return {"value": error(x), "standard_error": 0.001}
"""
CONFIG = 'language: PYTHON\nname: "sales"\nvariable { name: "x" type: FLOAT min: 0 max: 1 }\n'


def write_experiment(root, regions):
    """Write the experiment; return the names of its regions."""
    names = [f"r{number:02d}" for number in range(1, regions + 1)]
    text = CONFIG + "".join(f'region: "{name}"\n' for name in names)
    (root / "config.pb").write_text(text)
    (root / "sales.py").write_text(CODE)
    return names


def command(log, *words):
    """Call spearmint in this process; return its exit code."""
    with contextlib.redirect_stdout(log):
        code = cli.main([str(word) for word in words], standalone_mode=False)
    return code if isinstance(code, int) else 0


def day(root, number, options, log):
    """Run the commands of one day; return its figures."""
    begin = (START + timedelta(days=number)).timestamp()
    search = ["--driver=simulated_day:SimulatedDriver", "--again", "--then-final"]
    search += [f"--max-finished-jobs={options.trials}", f"--max-concurrent={options.gpus}"]
    with CLOCK.set_to(begin):
        codes = [command(log, *search, root), command(log, "promote", root)]
        hours = (CLOCK.now - begin) / 3600
    return {"day": number + 1, "exit_codes": codes, "hours": round(hours, 2)}


def require(holds, what):
    """Exit with an error if a promise is broken."""
    if not holds:
        sys.exit(f"broken: {what}")


def current_errors(root, names):
    """Return the test error of the current model of each region; check its files."""
    errors = {}
    for name in names:
        current = ModelStore(root / "models" / name).current()
        require(current is not None, f"{name} has no current model")
        listed = json.loads((current.path / "model.json").read_text())["files"]
        require(listed, f"{name}: the current model has no files")
        for file in listed:
            size = (current.path / "files" / file["path"]).stat().st_size
            require(size == file["bytes"], f"{name}: {file['path']} is not complete")
        errors[name] = current.value
    return errors


def trials_of(folder):
    """Return the number of complete trials by region."""
    out = io.StringIO()
    command(out, "export", "--json", folder)
    found = [trial["region"] for trial in json.loads(out.getvalue())]
    return {region: found.count(region) for region in found}


def run(root, options):
    """Run all days; return their figures."""
    names, log, rows = write_experiment(root, options.regions), io.StringIO(), []
    before, whole = {}, dict.fromkeys(names, options.trials)
    for number in range(options.days):
        real = time.perf_counter()
        row = day(root, number, options, log)
        require(row["exit_codes"][0] == 0, log.getvalue())
        errors = current_errors(root, names)
        worse = [name for name in names if errors[name] > before.get(name, errors[name])]
        require(not worse, f"the current models of {worse} are worse than the day before")
        require(trials_of(root) == whole, "a region has not all trials of the day")
        versions = [len(ModelStore(root / "models" / name).versions()) for name in names]
        require(set(versions) == {number + 1}, "a region has not one final model a day")
        changed = sum(errors[name] != before.get(name) for name in names)
        mean = sum(errors.values()) / len(errors)
        rows.append(
            {**row, "trials": sum(trials_of(root).values()), "finals": len(names)}
            | {"promoted": changed, "mean_error": mean, "seconds": time.perf_counter() - real}
        )
        before = errors
    kept = sorted(path.name for path in (root / "generations").glob("0*"))
    require(len(kept) == options.days - 1, "there is not one generation for each day")
    for name in kept:
        require(trials_of(root / "generations" / name) == whole, f"generation {name} lacks trials")
    return rows


def main():
    """Print a line for each day."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--regions", type=int, default=41)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--days", type=int, default=2)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = run(Path(folder), options)
    for row in rows:
        print(
            "day {day}: {trials} trials and {finals} final trainings in {hours:.1f} h of simulated "
            "time;\n  {promoted} of {finals} promoted, mean test error {mean_error:.4f}, "
            "exit codes {exit_codes}, {seconds:.1f} s".format(**row)
        )
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(f"CPU: {sum(each.ru_utime + each.ru_stime for each in used):.1f} s")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
