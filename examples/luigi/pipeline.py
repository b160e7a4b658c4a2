"""Search, train and promote the model of each region every day, as tasks of Luigi.

Each task calls one command and then writes its target. A command that was killed continues when it
is called again, and does nothing if it had ended. So after any kill, run the same pipeline again.
"""

import datetime
import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

import luigi
from luigi.execution_summary import LuigiStatusCode

CODE = Path(__file__).parent.parent / "regions"  # config.pb and demand.py
SPEARMINT = [sys.executable, "-m", "spearmint"]


class Step(luigi.Task):
    """A command for one region and day; its target is written when the command has ended."""

    directory = luigi.PathParameter(default="models", absolute=True)
    day = luigi.DateParameter(default=datetime.date.today())
    region = luigi.Parameter()
    trials = luigi.IntParameter(default=15, significant=False)
    accepted = (0,)  # exit codes

    @property
    def folder(self):
        """The directory of the search of the region, which all days share."""
        return self.directory / self.region

    def file(self, name):
        """Return a target of this region and day; Luigi renames it when it is complete."""
        return luigi.LocalTarget(self.directory / "days" / str(self.day) / f"{self.region}.{name}")

    def output(self):
        """Return the target."""
        return self.file(type(self).__name__.lower())

    def run(self):
        """Call spearmint, and write the target."""
        self.folder.mkdir(parents=True, exist_ok=True)
        log_file = self.folder / "log.txt"
        with (self.folder / "lock").open("w") as lock, log_file.open("a") as log:
            # A killed Luigi leaves its command running, which holds this lock, too: wait for it.
            fcntl.flock(lock, fcntl.LOCK_EX)
            argv = [*SPEARMINT, *self.words(), str(self.folder)]
            code = subprocess.call(argv, stdout=log, stderr=log, pass_fds=[lock.fileno()])
        if code not in self.accepted:
            raise RuntimeError(f"exit code {code}: see {log_file}")
        with self.output().open("w") as target:
            target.write("done\n")


class Search(Step):
    """Search the hyperparameters with the data of the day, from the best points of the last."""

    def words(self):
        """Begin the generation of this day, or continue it."""
        self.prepare()
        before = self.file("generations")
        if not before.exists():
            with before.open("w") as target:
                target.write(str(self.generations()))
        is_new = self.generations() <= int(Path(before.path).read_text())
        return ["run", *["--again"] * is_new, f"--max-finished-jobs={self.trials}"]

    def prepare(self):
        """Write config.pb and the code of this region."""
        lines = (CODE / "config.pb").read_text().splitlines()
        kept = [line for line in lines if not line.startswith(("region:", "warm_start:"))]
        (self.folder / "config.pb").write_text("\n".join([*kept, f'region: "{self.region}"\n']))
        shutil.copy(CODE / "demand.py", self.folder)

    def generations(self):
        """Return how many generations of the search have begun."""
        finished = len(list(self.folder.glob("generations/[0-9]*")))
        return finished + (self.folder / "spearmint.db").exists()


class Final(Step):
    """Train the best trial on all data, and test it once."""

    def requires(self):
        """Return the search."""
        return self.clone(Search)

    def words(self):
        """Train nothing if the model of this trial is there."""
        return ["final"]


class Promote(Step):
    """Make the model current if it is better."""

    accepted = (0, 3)  # 3: the current model stays

    def requires(self):
        """Return the final training."""
        return self.clone(Final)

    def words(self):
        """Decide by the test metric."""
        return ["promote"]


class Models(luigi.WrapperTask):
    """The models of all regions."""

    directory = Step.directory
    day = Step.day
    trials = Step.trials
    regions = luigi.ListParameter(default=["de", "jp", "us"])

    def requires(self):
        """Return the last task of each region."""
        return [self.clone(Promote, region=region) for region in self.regions]


if __name__ == "__main__":
    done = luigi.run(local_scheduler=True, detailed_summary=True)
    good = (LuigiStatusCode.SUCCESS, LuigiStatusCode.SUCCESS_WITH_RETRY)
    sys.exit(0 if done.status in good else 1)
