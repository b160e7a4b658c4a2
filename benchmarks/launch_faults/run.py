"""One seeded run with one cluster."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field

from benchmarks.launch_faults.command import Command, spawn
from benchmarks.launch_faults.judge import Truth, judged
from tests.testbed.hostless import TYPE, HostlessCloud
from tests.testbed.moto_more import PRICES

LAG_S = 2.5  # longest lag of the fake EC2
SLOW_S = 0.8  # longest delay of a call
WAITS_S = LAG_S + SLOW_S + 1.0  # how long the commands expect AWS to lag
_LOST = ("RunInstances", "StartInstances", "StopInstances", "TerminateInstances")
_LOST += ("CreateSecurityGroup", "DeleteSecurityGroup", "CreateTags")
_LOST += ("CreateLaunchTemplate", "DeleteLaunchTemplate")
_THROTTLED = ("*", "DescribeInstances", "TerminateInstances", "CreateLaunchTemplate")
RECLAIM_S = 0.2  # before a node accepts SSH
_SLOW = ("RunInstances", "StartInstances", "StopInstances", "TerminateInstances")


@dataclass
class Run:
    """One seeded run with one cluster.

    Attributes:
        wrong: What was wrong, with the output.
        said: Count of last messages by kind.
        done: Count of commands by name, fault and whether another one ran at once.
    """

    cloud: HostlessCloud
    seed: int
    wrong: list[str] = field(default_factory=list)
    said: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)  # noqa: S311
        self.name = f"c{self.seed}"
        low = self.random.uniform(0.0, LAG_S / 2)
        self.cloud.rules(
            seed=self.seed,
            lag_s=[low, LAG_S],
            flicker=self.random.choice([0.0, 0.3, 0.6]),
            slow_s={"*": [0.0, 0.1], **{action: [0.0, SLOW_S] for action in _SLOW}},
            lost=dict.fromkeys(_LOST, self.random.choice([0.0, 0.1, 0.3])),
            throttled={self.random.choice(_THROTTLED): self.random.choice([0.0, 0.1, 0.3])},
            reclaim_s=[0.05, RECLAIM_S],
        )

    def spawn(self, *words: str) -> Command:
        """Start a command on the cluster."""
        return spawn(self.cloud, WAITS_S, *words, self.name)

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

    def truth(self) -> Truth:
        """Return what exists; two of one name are wrong."""
        rows = [(each.alias or each.id, each.state) for each in self.cloud.instances(self.name)]
        found = Truth.of(rows, PRICES[TYPE])
        if found.twice:
            self.wrong.append(f"two of {', '.join(found.twice)}")
        return found

    def check(
        self, command: Command, before: Truth, *, others: bool = False, at_once: bool = False
    ) -> str:
        """Compare the last message of a command with the truth; return the message.

        Args:
            before: The truth at its start.
            others, at_once: See ``judged``.
        """
        text = command.wait()
        name = " ".join(word for word in command.words[:2] if word in ("-x", command.words[0]))
        with_other = ", with another" if at_once else ""
        self.done[f"{name} | {command.was_cut or 'no signal'}{with_other}"] += 1
        if command.says_nothing:
            time.sleep(SLOW_S + 0.3)  # AWS may still work on its last request
            self.truth()
            self.said["killed"] += 1
            return text
        now = self.truth()
        kind, holds = judged(text, now, before, others=others, at_once=at_once)
        self.said[kind] += 1
        if not holds:
            states = f"before {before.states}, now {now.states}"
            cut = ", a signal was sent" if command.was_cut else ""
            self.wrong.append(f"{command.words}{cut} said {kind}; {states}:\n{text[-2500:]}")
        return text

    def do(self, *words: str, cut: int | None = None) -> None:
        """Run a command alone, interrupt or kill it if asked for, and check it."""
        before = self.truth()
        command = self.spawn(*words)
        if cut is not None:
            if words[0] in ("start", "addnode"):
                self.pause_in_launch(command)
            else:
                self.pause(4.0)
            command.cut(cut)
        text = self.check(command, before)
        if cut is None and command.status and not (_refused(text) or has_vanished(text)):
            self.wrong.append(f"{words} failed with {command.status}:\n{text[-2500:]}")

    def at_once(self, first: Command, second: Command, before: Truth) -> None:
        """Check two commands that ran at once: strictly what the last one said."""
        for one, other in ((first, second), (second, first)):
            one.wait()
            others = not other.has_ended() or other.ended > one.ended - WAITS_S
            self.check(one, before, others=others, at_once=True)

    def finish(self) -> None:
        """Terminate the cluster, and look for what is left."""
        before = self.truth()
        command = self.spawn("terminate", "-c")
        text = command.wait()
        self.done["terminate | no signal, at the end"] += 1
        time.sleep(SLOW_S + 0.3)
        if command.status and (before.there or "does not exist" not in text):
            self.wrong.append(f"terminate ended with {command.status}:\n{text[-1500:]}")
        if left := self.truth().there:
            self.wrong.append(f"orphans: {left}\n{text[-1500:]}")
        elif self.cloud.left(self.name):
            self.said["free group or template left"] += 1


def has_vanished(text: str) -> bool:
    """Return whether a command reports spot instances that AWS terminated."""
    return "nodes failed" in text and "SpotInstanceTermination" in text


def _refused(text: str) -> bool:
    """Return whether a command was refused because of the state of the cluster."""
    reasons = ("already exists", "does not exist", "has no instances", "has only", "is running (")
    return any(reason in text for reason in (*reasons, "is stopped", "is stopping"))
