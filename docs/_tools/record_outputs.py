"""Run the commands of the how-to pages and write what they print to docs/_outputs."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
OUTPUTS = ROOT / "docs" / "_outputs"
CONFIG = """\
language: PYTHON
name:     "net"
variable { name: "lr"     type: FLOAT  min: 0.0001  max: 1  log: true }
variable { name: "units"  type: INT    min: 16      max: 512 }
"""
VALUE = "(math.log10(params['lr'][0]) + 2) ** 2 + (params['units'][0] - 200) ** 2 / 1e5"
PLAIN = f"import math\n\ndef main(job_id, params):\n    return {VALUE}\n"
SLOW = PLAIN.replace("import math", "import math, time").replace(
    "    return", "    time.sleep(1.5)\n    return"
)
HANGS = PLAIN.replace("import math", "import math, time").replace(
    "    return", "    time.sleep(600 if job_id == 3 else 0)\n    return"
)
FAILS = PLAIN.replace(
    "    return",
    "    if params['units'][0] > 200:\n"
    "        raise ValueError(f\"units {params['units'][0]}: shapes do not match\")\n"
    "    return",
)
PRUNES = f"""\
import math, time
from spearmint import report

def main(job_id, params):
    for epoch in range(20):
        loss = {VALUE} + 1 / (epoch + 1)
        report(epoch, loss)
        time.sleep(0.05)
    return loss
"""


class Recorder:
    """Runs commands in a scratch directory and keeps what they print."""

    def __init__(self, home: Path, output: Path) -> None:
        self.home, self.output = home, output
        names = ("SPEARMINT", "PYTHONPATH", "COLUMNS")
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(names)}
        self.environment |= {
            "COLUMNS": "110",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }

    def experiment(self, name: str, code: str, config: str = CONFIG) -> Path:
        """Return a new directory with config.pb and net.py."""
        folder = self.home / name
        folder.mkdir()
        (folder / "config.pb").write_text(config)
        (folder / "net.py").write_text(code)
        return folder

    def run(self, *argv: str, cwd: Path | None = None) -> str:
        """Return what a command prints, errors included."""
        done = subprocess.run(
            argv,
            cwd=cwd or self.home,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.stdout

    def start(self, *argv: str) -> subprocess.Popen[str]:
        """Start a command whose output is read later."""
        return subprocess.Popen(
            argv,
            cwd=self.home,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def write(self, name: str, text: str, *, head: int = 0, tail: int = 0) -> None:
        """Keep the first and last lines of ``text`` as NAME.txt, paths shortened."""
        lines = text.replace(f"{self.home}/", "").replace(str(self.home), ".").splitlines()
        if head and len(lines) > head + tail:
            lines = [*lines[:head], "...", *lines[len(lines) - tail :]]
        self.output.mkdir(exist_ok=True)
        content = "\n".join(line.rstrip() for line in lines).strip() + "\n"
        (self.output / f"{name}.txt").write_text(content)


def wait_for(path: Path) -> None:
    """Return when ``path`` exists."""
    deadline = time.monotonic() + 60
    while not path.exists():
        if time.monotonic() > deadline:
            raise SystemExit(f"{path} did not appear")
        time.sleep(0.1)


def stop_and_status(r: Recorder) -> None:
    """Interrupt a search, continue it and list it."""
    r.experiment("experiment", SLOW)
    search = ("spearmint", "--max-concurrent=2", "--max-finished-jobs=6", "experiment")
    process = r.start(*search)
    wait_for(r.home / "experiment/jobs/00000003/runner.json")
    process.send_signal(signal.SIGINT)
    stopped, _ = process.communicate()
    r.write("stop", stopped.partition("\nBest")[0] + stopped[stopped.index("Error") :])
    r.run(*search)
    r.write("status", r.run("spearmint", "status", "experiment"))
    r.run("spearmint", "export", "--csv", "-o", "trials.csv", "experiment")
    r.write("csv", "\n".join((r.home / "trials.csv").read_text().splitlines()[:3]))


def stop_rule(r: Recorder) -> None:
    """Stop a search by a rule."""
    r.experiment("rule", PLAIN)
    text = r.run("spearmint", "--max-finished-jobs=200", "--patience=5", "rule")
    r.write("rule", text, head=3, tail=9)


def pruning(r: Recorder) -> None:
    """Prune poor trials."""
    r.experiment("prune", PRUNES)
    text = r.run(
        "spearmint", "--pruner=median", "--pruner-args=n_startup_trials=3", "-n", "2",
        "--max-finished-jobs=12", "prune",
    )  # fmt: skip
    r.write("prune", text[text.index("trial 3") :], head=7)


def killed_trial(r: Recorder) -> None:
    """Kill one trial twice."""
    r.experiment("kill", HANGS)
    process = r.start("spearmint", "--max-concurrent=2", "--max-finished-jobs=5", "kill")
    runner = r.home / "kill/jobs/00000003/runner.json"
    for _ in range(2):
        wait_for(runner)
        found = re.search(r'"pid": (\d+)', runner.read_text())
        assert found is not None  # noqa: S101 - the runner wrote it
        time.sleep(1)
        runner.unlink()
        os.kill(int(found[1]), signal.SIGTERM)
    text, _ = process.communicate()
    lost = [line for line in text.splitlines() if line.startswith("trial 3")]
    r.write("kill_once", lost[0])
    r.write("kill_twice", lost[-1])


def time_limit(r: Recorder) -> None:
    """Let trials exceed their timeout."""
    r.experiment("timeout", HANGS)
    text = r.run("spearmint", "--trial-timeout=2", "-n", "2", "--max-finished-jobs=4", "timeout")
    r.write("timeout", "\n".join(line for line in text.splitlines() if line.startswith("trial 3")))


def failed_trials(r: Recorder) -> None:
    """Fail trials, then rerun them."""
    folder = r.experiment("failing", FAILS)
    r.run("spearmint", "--max-finished-jobs=6", "failing")
    text = r.run("spearmint", "status", "failing")
    r.write("broken", text[text.index("Failed (broken)") :], head=6)
    (folder / "net.py").write_text(PLAIN)
    retried = r.run("spearmint", "--retry-broken", "--max-finished-jobs=10", "failing")
    r.write("rerun", retried, head=5)


def wider_space(r: Recorder) -> None:
    """Import a search into a wider one."""
    old = r.experiment("old", PLAIN)
    r.run("spearmint", "--max-finished-jobs=8", ".", cwd=old)
    wider = CONFIG.replace("max: 512", "max: 1024")
    (old / "wider").mkdir()
    (old / "wider/config.pb").write_text(wider)
    shutil.copy(old / "net.py", old / "wider")
    imported = r.run("spearmint", "import", "wider", ".", cwd=old)
    text = r.run("spearmint", "--max-finished-jobs=10", "wider", cwd=old)
    r.write("widen", imported + text, head=4)
    (old / "config.pb").write_text(wider)
    r.write("mismatch", r.run("spearmint", "--max-finished-jobs=10", ".", cwd=old))


def import_and_run(r: Recorder) -> None:
    """Import a CSV file, and run an example."""
    shutil.copytree(ROOT / "examples" / "branin", r.home / "branin")
    (r.home / "earlier.csv").write_text(
        "X[0],X[1],value,note\n0.54,0.15,0.42,by hand\n0.12,0.82,0.9,by hand\n0.94,0.17,,crashed\n"
    )
    r.write("import", r.run("spearmint", "import", "branin", "earlier.csv"))
    shutil.copytree(ROOT / "examples" / "branin", r.home / "fresh")
    text = r.run("spearmint", "--max-concurrent=2", "--max-finished-jobs=6", "fresh")
    r.write("run", text, head=6, tail=7)


def ask_and_tell(r: Recorder) -> None:
    """Run the example of ask and tell."""
    shutil.copytree(ROOT / "examples" / "ask_and_tell", r.home / "ask_and_tell")
    r.write("ask", r.run("python", "ask_and_tell.py", cwd=r.home / "ask_and_tell"))


def minimize(r: Recorder) -> None:
    """Minimize a Python function."""
    shutil.copytree(ROOT / "examples" / "minimize", r.home / "minimize")
    r.write("minimize", r.run("python", "minimize.py", cwd=r.home / "minimize"), head=3, tail=2)


def training(r: Recorder) -> None:
    """Train and evaluate a network."""
    text = r.run(
        "pycuda-nn", "train", "--data", "digits", "--set", "hidden=128,64", "--set", "epochs=20",
        "--set", "scale=unit", "--checkpoint", "digits.npz",
    )  # fmt: skip
    r.write("train", text, head=4, tail=4)
    r.write("evaluate", r.run("pycuda-nn", "evaluate", "--checkpoint", "digits.npz"))


def tutorial(r: Recorder) -> None:
    """Follow the tutorial."""
    tutorial = r.home / "tutorial"
    shutil.copytree(ROOT / "examples" / "tutorial", tutorial)
    r.run("python", "make_data.py", cwd=tutorial)
    r.write("tutorial_data", "\n".join((tutorial / "pumps.csv").read_text().splitlines()[:4]))
    text = r.run("spearmint", "-n", "2", "--max-finished-jobs=25", ".", cwd=tutorial)
    r.write("tutorial_run", text, head=4, tail=8)
    r.write("tutorial_best", r.run("spearmint", "best", ".", cwd=tutorial))
    r.write("tutorial_final", r.run("python", "final.py", cwd=tutorial))
    typo = (tutorial / "config.pb").read_text().replace("variable {", "variabel {", 1)
    (tutorial / "typo.pb").write_text(typo)
    r.write("typo", r.run("spearmint", "typo.pb", cwd=tutorial))


def record(recorder: Recorder) -> None:
    """Run every scenario."""
    for scenario in SCENARIOS:
        scenario(recorder)


SCENARIOS = (
    stop_and_status,
    stop_rule,
    pruning,
    killed_trial,
    time_limit,
    failed_trials,
    wider_space,
    import_and_run,
    ask_and_tell,
    minimize,
    training,
    tutorial,
)


def main() -> None:
    """Record into docs/_outputs, or the folder of ``--output``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=OUTPUTS, help="folder of the text files")
    output = parser.parse_args().output
    with tempfile.TemporaryDirectory() as home:
        record(Recorder(Path(home).resolve(), output))


if __name__ == "__main__":
    main()
