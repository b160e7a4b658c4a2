"""What happens to a cluster in a run."""

from __future__ import annotations

import signal
from collections.abc import Callable

from benchmarks.launch_faults.command import CUTS
from benchmarks.launch_faults.run import Run

CHANGES: tuple[tuple[str, ...], ...] = (
    ("start", "-x"),
    ("restart",),
    ("stop", "-c"),
    ("addnode",),
    ("removenode", "-c"),
    ("terminate", "-c"),
)


def two_starts(run: Run) -> None:
    """Start one name twice."""
    before = run.truth()
    first = run.spawn("start")
    run.pause(1.5)
    second = run.spawn("start")
    texts = [first.wait(), second.wait()]
    if sum("is ready" in text for text in texts) != 1:
        run.wrong.append("not exactly one start is ready:\n" + "\n".join(texts))
    run.at_once(first, second, before)
    if run.truth().billed != ["master", "node001", "node002"]:
        run.wrong.append(f"two starts made {run.truth().states}")


def cut_start(run: Run) -> None:
    """Interrupt a start."""
    run.do("start", cut=run.random.choice(CUTS))


def killed_start(run: Run) -> None:
    """Kill a start, and start the same name."""
    run.do("start", cut=signal.SIGKILL)
    if run.random.random() < 0.5:
        run.do("start")


def terminated_start(run: Run) -> None:
    """Terminate a cluster while it starts."""
    before = run.truth()
    command = run.spawn("start")
    run.pause_in_launch(command)
    run.at_once(command, run.spawn("terminate", "-c"), before)


def two_addnodes(run: Run) -> None:
    """Add a node twice at once; interrupt or kill one of them in some runs."""
    run.do("start", "-s", "2")
    before = run.truth()
    first = run.spawn("addnode")
    run.pause(1.0)
    second = run.spawn("addnode")
    how = run.random.choice([None, None, signal.SIGKILL, *CUTS])
    if how is not None:
        run.pause_in_launch(first)
        first.cut(how)
    run.at_once(first, second, before)
    if how is None and len(run.truth().billed) != 4:
        run.wrong.append(f"two addnodes made {run.truth().states}")


def cut_addnode(run: Run) -> None:
    """Interrupt one addnode."""
    run.do("start", "-s", "2")
    run.do("addnode", "-n", "2", cut=run.random.choice(CUTS))


def cut_change(run: Run) -> None:
    """Interrupt or kill one command that changes a cluster, then rerun it."""
    run.do("start")
    words = run.random.choice(CHANGES)
    if words == ("start", "-x"):
        run.do("stop", "-c")
    run.do(*words, cut=run.random.choice([signal.SIGKILL, *CUTS]))
    run.do(*words)


def several_changes(run: Run) -> None:
    """Change a cluster three times, one command directly after the other."""
    run.do("start")
    for _ in range(3):
        cut = run.random.choice([None, None, None, signal.SIGKILL, *CUTS])
        run.do(*run.random.choice(CHANGES), cut=cut)


def two_changes(run: Run) -> None:
    """Change a cluster by two commands at once; interrupt or kill one of them in some runs."""
    run.do("start")
    before = run.truth()
    first = run.spawn(*run.random.choice(CHANGES))
    run.pause(2.0)
    second = run.spawn(*run.random.choice(CHANGES))
    how = run.random.choice([None, None, signal.SIGKILL, *CUTS])
    if how is not None:
        run.pause(3.0)
        first.cut(how)
    run.at_once(first, second, before)


def changed_start(run: Run) -> None:
    """Interrupt or kill a start, then list the cluster or change it at once."""
    run.do("start", cut=run.random.choice([signal.SIGKILL, *CUTS]))
    run.do(*run.random.choice([("listclusters",), ("start", "-x"), ("terminate", "-c")]))


def listed_changes(run: Run) -> None:
    """List a cluster directly after each of two changes."""
    run.do("start")
    for _ in range(2):
        cut = run.random.choice([None, None, signal.SIGKILL, *CUTS])
        run.do(*run.random.choice(CHANGES), cut=cut)
        run.do("listclusters")


def spot_nodes(run: Run) -> None:
    """Add spot nodes of which AWS terminates some at once; remove one."""
    run.do("start", "-s", "2")
    run.do("addnode", "-n", "3", "-b", "0.5")
    run.do("listclusters")
    run.do("removenode", "-c")


SCENES: tuple[Callable[[Run], None], ...] = (
    two_starts,
    cut_start,
    killed_start,
    terminated_start,
    two_addnodes,
    cut_addnode,
    cut_change,
    several_changes,
    two_changes,
    changed_start,
    listed_changes,
    spot_nodes,
)
