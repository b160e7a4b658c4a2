"""Interrupt, kill and repeat commands while AWS is slow, late and loses responses.

``python -m benchmarks.launch_faults --runs 200`` makes 200 seeded runs of ``start``, ``addnode``
and ``terminate`` against the fake EC2 without hosts. Each run compares the last message of each
command with EC2's true state, and looks for two nodes of one name and for instances left after
``terminate``. A seed makes the same choices again; the exact timing depends on the machine.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import random
import re
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from unittest import mock

from starcluster.aws import client
from starcluster.launch import wait
from tests.testbed.hostless import HostlessCloud, without_hosts

LAG_S = 2.5  # longest lag of the fake EC2
SLOW_S = 0.8  # longest delay of a call
_CUTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LOST = ("RunInstances", "TerminateInstances", "CreateSecurityGroup", "DeleteSecurityGroup")
_LOST += ("CreateLaunchTemplate", "DeleteLaunchTemplate", "CreateTags")


@dataclass
class Command:
    """A command in a process of its own."""

    words: tuple[str, ...]
    pid: int
    output: Path
    killed: bool = False
    status: int | None = None

    def has_ended(self) -> bool:
        """Return whether the command has ended."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = os.waitstatus_to_exitcode(status) if pid else None
        return self.status is not None

    def cut(self, number: int) -> None:
        """Send a signal, unless the command has ended."""
        if not self.has_ended():
            os.kill(self.pid, number)
            self.killed = number == signal.SIGKILL

    def wait(self) -> str:
        """Return the output when the command has ended."""
        if self.status is None:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.output.read_text()


@dataclass
class Run:
    """One seeded run with one cluster."""

    cloud: HostlessCloud
    seed: int
    wrong: list[str] = field(default_factory=list)
    said: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)  # noqa: S311
        self.name = f"c{self.seed}"
        self.before: list[str] = []
        low = self.random.uniform(0.0, LAG_S / 2)
        self.cloud.rules(
            seed=self.seed,
            lag_s=[low, LAG_S],
            flicker=self.random.choice([0.0, 0.3, 0.6]),
            slow_s={"*": [0.0, 0.1], "RunInstances": [0.0, SLOW_S]},
            lost=dict.fromkeys(_LOST, self.random.choice([0.0, 0.1, 0.3])),
        )

    def spawn(self, *words: str) -> Command:
        """Start a command."""
        handle, path = tempfile.mkstemp(dir=self.cloud.folder, suffix=".out")
        pid = os.fork()
        if not pid:
            os.dup2(handle, 1)
            os.dup2(handle, 2)
            _serve(self.cloud, words)
        os.close(handle)
        return Command(words, pid, Path(path))

    def pause(self, longest_s: float) -> None:
        """Wait for a random time."""
        time.sleep(self.random.uniform(0.0, longest_s))

    def pause_in_launch(self, command: Command) -> None:
        """Wait until a command launches and a random time more; in some runs less."""
        if self.random.random() < 0.2:
            self.pause(3.0)
            return
        longest, pause = 60.0, self.random.uniform(0.0, 2.5)
        began = time.monotonic()
        while "launching" not in command.output.read_text() and not command.has_ended():
            if time.monotonic() > began + longest:
                break
            time.sleep(0.01)
        time.sleep(pause)

    def truth(self) -> list[str]:
        """Return the aliases of all live instances; two of one name are wrong."""
        found = self.cloud.live(self.name)
        if twice := [alias for alias, count in Counter(found).items() if count > 1]:
            self.wrong.append(f"two of {', '.join(twice)}")
        return found

    def check(self, command: Command, *, others: bool = False) -> None:
        """Compare the last message of a command with the truth.

        Args:
            others: Another command changed the cluster at the same time.
        """
        text = command.wait()
        if command.killed or (command.status or 0) < 0:
            time.sleep(SLOW_S + 0.3)  # AWS may still work on its last request
            self.truth()
            self.said["killed"] += 1
            return
        there = self.truth()
        kind, holds = judged(text, there, self.before, others=others)
        self.said[kind] += 1
        if not holds:
            self.wrong.append(f"{command.words} said {kind}, there is {there}:\n{text[-1500:]}")

    def started(self, command: Command) -> None:
        """Wait for a start that must succeed."""
        text = command.wait()
        if command.status:
            self.wrong.append(f"{command.words} ended with {command.status}:\n{text[-1500:]}")
        self.before = self.truth()

    def finish(self) -> None:
        """Terminate the cluster, and look for what is left."""
        before = self.truth()
        command = self.spawn("terminate", "-c", self.name)
        text = command.wait()
        time.sleep(SLOW_S + 0.3)
        if command.status and (before or "does not exist" not in text):
            self.wrong.append(f"terminate ended with {command.status}:\n{text[-1500:]}")
        if left := self.truth():
            self.wrong.append(f"orphans: {left}\n{text[-1500:]}")
        elif self.cloud.left(self.name):
            self.said["free group or template left"] += 1


def judged(text: str, there: list[str], before: list[str], *, others: bool) -> tuple[str, bool]:
    """Return the kind of a command's last message, and whether it is so.

    Args:
        there, before: What exists now, and what existed before the command.
    """
    if "Traceback" in text:
        return "traceback", False
    if found := re.search(r"instances? exists? \((.*?)\)", text):
        return "instances exist", others or sorted(found[1].split(", ")) == there
    if "has no instances" in text:
        return "no instances", others or not there
    if found := re.search(r"is ready, (\d+) nodes\. (Log in|New)", text):
        whole = found[2] == "Log in"
        return "ready", others or not whole or len(there) == int(found[1])
    if re.search(r"being (start|extend|terminat)ed by", text):
        return "who does it", others
    if "already exists" in text:
        return "exists", others or bool(there)
    if "does not exist" in text:
        return "does not exist", others or not there
    if text.rstrip().endswith("Aborted!") or "interrupted" in text.lower():
        return "interrupted before the launch", others or there == before
    if "Terminated" in text:
        return "terminated", others or not there
    return "other", others


def two_starts(run: Run) -> None:
    """Start one name twice."""
    first = run.spawn("start", run.name)
    run.pause(1.5)
    second = run.spawn("start", run.name)
    texts = [first.wait(), second.wait()]
    if sum("is ready" in text for text in texts) != 1:
        run.wrong.append("not exactly one start is ready:\n" + "\n".join(texts))
    run.check(first, others=True)
    run.check(second, others=True)
    if run.truth() != ["master", "node001", "node002"]:
        run.wrong.append(f"two starts made {run.truth()}")


def cut_start(run: Run) -> None:
    """Interrupt a start."""
    command = run.spawn("start", run.name)
    run.pause_in_launch(command)
    command.cut(run.random.choice(_CUTS))
    run.check(command)


def killed_start(run: Run) -> None:
    """Kill a start, and start the same name."""
    command = run.spawn("start", run.name)
    run.pause_in_launch(command)
    command.cut(signal.SIGKILL)
    run.check(command)
    if run.random.random() < 0.5:
        second = run.spawn("start", run.name)
        second.wait()
        run.check(second)


def terminated_start(run: Run) -> None:
    """Terminate a cluster while it starts."""
    command = run.spawn("start", run.name)
    run.pause_in_launch(command)
    end = run.spawn("terminate", "-c", run.name)
    end.wait()
    run.check(command, others=True)


def two_addnodes(run: Run) -> None:
    """Add a node twice at once; interrupt or kill one of them in some runs."""
    run.started(run.spawn("start", "-s", "2", run.name))
    first = run.spawn("addnode", run.name)
    run.pause(1.0)
    second = run.spawn("addnode", run.name)
    how = run.random.choice([None, None, signal.SIGKILL, *_CUTS])
    if how is not None:
        run.pause_in_launch(first)
        first.cut(how)
    first.wait()
    second.wait()
    run.check(first, others=True)
    run.check(second, others=True)
    if how is None and len(run.truth()) != 4:
        run.wrong.append(f"two addnodes made {run.truth()}")


def cut_addnode(run: Run) -> None:
    """Interrupt one addnode."""
    run.started(run.spawn("start", "-s", "2", run.name))
    command = run.spawn("addnode", "-n", "2", run.name)
    run.pause_in_launch(command)
    command.cut(run.random.choice(_CUTS))
    run.check(command)


SCENES: tuple[Callable[[Run], None], ...] = (
    two_starts,
    cut_start,
    killed_start,
    terminated_start,
    two_addnodes,
    cut_addnode,
)


def _serve(cloud: HostlessCloud, words: tuple[str, ...]) -> NoReturn:
    """Be the command ``starcluster WORDS``; never return."""
    status = 1
    try:
        os.environ.clear()
        os.environ.update(cloud.environment())
        sys.argv = ["starcluster", "-c", str(cloud.config), *words]
        wait.LAG_S = LAG_S + SLOW_S + 1.0
        from starcluster.cli import main as command

        with without_hosts(lambda: random.uniform(0.0, 0.5)), _session(cloud):  # noqa: S311
            command()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _session(cloud: HostlessCloud) -> contextlib.AbstractContextManager[object]:
    """Use the session of this program, which has read boto3's models: that takes a second."""
    return mock.patch.object(client, "open_session", return_value=cloud.session)


def one_run(cloud: HostlessCloud, seed: int) -> Run:
    """Do the run of a seed."""
    run = Run(cloud, seed)
    SCENES[seed % len(SCENES)](run)
    run.finish()
    return run


def _work(seeds: Sequence[int]) -> Iterator[tuple[int, list[str], Counter[str]]]:
    with HostlessCloud() as cloud:
        importlib.import_module("starcluster.commands.start")  # before the commands fork
        cloud.warm()
        for seed in seeds:
            run = one_run(cloud, seed)
            yield seed, run.wrong, run.said


def main() -> None:
    """Print what was said, and what was wrong; exit with 1 if something was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--at-once", type=int, default=4, help="runs at once")
    given = parser.parse_args()
    began = time.monotonic()
    seeds = range(given.first, given.first + given.runs)
    paths, workers = [], []
    for number in range(min(given.at_once, given.runs)):
        path = Path(tempfile.mkstemp(suffix=".jsonl")[1])
        paths.append(path)
        if worker := os.fork():
            workers.append(worker)
            continue
        with path.open("w") as rows:
            for row in _work(seeds[number :: given.at_once]):
                print(json.dumps(row), file=rows, flush=True)
        os._exit(0)
    ended = [os.waitpid(worker, 0)[1] for worker in workers]
    rows = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    for path in paths:
        path.unlink()
    said: Counter[str] = Counter()
    for _, _, counts in rows:
        said.update(counts)
    bad = {seed: wrong for seed, wrong, _ in rows if wrong}
    for seed, wrong in sorted(bad.items()):
        print(f"seed {seed} ({SCENES[seed % len(SCENES)].__name__}): " + "\n  ".join(wrong))
    print(f"{len(rows)} runs, {len(bad)} wrong, {time.monotonic() - began:.0f} s")
    for kind, count in said.most_common():
        print(f"  {count:4} {kind}")
    if bad or any(ended) or len(rows) != given.runs:
        sys.exit(1)


if __name__ == "__main__":
    main()
