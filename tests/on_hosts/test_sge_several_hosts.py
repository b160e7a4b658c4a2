"""Jobs and trials on two hosts of a real Grid Engine cell, each with its own GPUs."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sge_jobs.scripts import script_path
from tests.on_hosts.conftest import MakeSearch
from tests.on_hosts.ranks_on_hosts import CODE as RANKS
from tests.on_hosts.ranks_on_hosts import CONFIG as RANKS_CONFIG
from tests.on_hosts.ranks_on_hosts import check_trials_on_two_hosts
from tests.on_hosts.searches import SgeSearch
from tests.testbed.cell import UID, Cell
from tests.testbed.fabric import Node
from tests.testbed.torchrun import write_torch
from tests.waiting import until

pytestmark = pytest.mark.sge

OPTIONS = ("--gpus=2", "--slots=2", "--pe=spread")


@pytest.fixture(autouse=True)
def spread(cell: Cell) -> Iterator[None]:
    """Add a parallel environment of two slots on each host; restore how the cell counts GPUs."""
    pe = cell.qconf("-sp", "smp")
    for name, value in (
        ("pe_name", "spread"),
        ("allocation_rule", "2"),
        ("control_slaves", "TRUE"),
        ("job_is_first_task", "FALSE"),
    ):
        pe = re.sub(rf"(?m)^{name} .*", f"{name} {value}", pe)
    cell.qconf_file("-Ap", pe)
    cell.qconf("-aattr", "queue", "pe_list", "spread", "all.q")
    complexes = cell.qconf("-sc")
    yield
    cell.qconf_file("-Mc", complexes)
    cell.run("qdel", "-u", "*")
    cell.wait_idle()


def counts_per_slot(node: Node) -> bool:
    return "per_slot 1" in node.run("cat", "/run/sge_jobs/gpus").stdout


def count_per_slot(cell: Cell, search: SgeSearch) -> None:
    """Run the command that spearmint prints when the cell counts GPUs for each job."""
    argv = ["spearmint", "--driver=SGE", "--nodes=2", "--processes=2", *OPTIONS]
    refused = cell.run(*argv, "--dry-run", str(search.directory), uid=UID)
    assert refused.returncode == 2, refused
    fix = re.search(r"qconf -sc \| .* -Mc complexes", refused.stderr)
    assert fix, refused.stderr
    cell.checked("sh", "-c", f"cd {cell.home} && {fix[0]}")
    for node in cell.hosts:  # execd restarts its sensor, which rereads the setting
        node.run("pkill", "-f", "sge_jobs.node.sensor")
    until(lambda: all(map(counts_per_slot, cell.hosts)), 60, 0.5)


def test_a_parallel_job_shares_its_gpus_and_slots_count_where_the_site_says_so(
    cell: Cell, make_search: MakeSearch
) -> None:
    out = cell.home / "parallel"
    say = "echo $(hostname) [$CUDA_VISIBLE_DEVICES]"
    script = (
        f"#!/bin/bash\n{say} first >> {out}\n"
        "for host in $(awk '{print $1, $1}' $PE_HOSTFILE); do\n"
        f"  qrsh -inherit $host '{say} further >> {out}; sleep 1' &\ndone\nwait\n"
    )

    def seen() -> list[str]:
        cell.submit(script, "-pe", "spread", "4", "-l", "gpu=1")
        cell.wait_idle()
        lines = out.read_text().splitlines()
        out.unlink()
        return lines

    lines = seen()  # counted per job: on its first host
    (master,) = (line for line in lines if line.endswith(" first"))
    host, gpu, _ = master.split()
    assert re.fullmatch(rf"\[GPU-{host}-\d\]", gpu)
    slaves = sorted(line.rsplit(" ", 1)[0] for line in lines if line.endswith(" further"))
    assert slaves.count(f"{host} {gpu}") == 2
    assert sum(line.endswith(" []") for line in slaves) == 2
    search = make_search(trials=3, config=RANKS_CONFIG, code=RANKS)
    count_per_slot(cell, search)
    lines = seen()
    assert len(lines) == 5
    assert all(line.count("GPU-") == 2 for line in lines), lines
    check_training_on_two_hosts(cell)
    ranks = check_trials_on_two_hosts(search, *OPTIONS)
    assert all(each["gpus"].count(f"GPU-{each['host']}-") == 2 for each in ranks)


def check_training_on_two_hosts(cell: Cell) -> None:
    """Train with torchrun on each host, also when one is killed, and when the job is deleted."""
    folder = cell.home / "two hosts"
    folder.mkdir()
    folder.chmod(0o777)
    write_torch(cell.home / "lib")
    shared = f"PYTHON={sys.executable},PYTHONPATH={cell.home / 'lib'},MINE=x y"
    options = ("-wd", str(folder), "-v", shared, "-pe", "spread", "4")
    for action, ends in (("exit 0", True), ("train 0", True), ("train 1", True), ("train", False)):
        out = folder / action
        words = (str(script_path("train_hosts")), "train.py", "$HOME", action)
        job = cell.submit("", *options, "-o", str(out), *words)

        def told(out: Path = out) -> list[dict[str, object]]:
            lines = out.read_text().splitlines() if out.exists() else []
            return [json.loads(line) for line in lines if line.startswith("{")]

        until(lambda: len(told()) == 2, 90, 0.1, progress=lambda: len(told()))
        if not ends:
            cell.run("qdel", job)
        cell.wait_idle()
        ranks = {one["node_rank"]: one for one in told()}
        assert set(ranks) == {0, 1}
        for one in ranks.values():
            assert one["program"] == ["train.py", "$HOME", action]
            assert (one["folder"], one["mine"], one["nproc_per_node"]) == (str(folder), "x y", 2)
            assert str(one["gpus"]).count(f"GPU-{one['host']}-") == 2
        assert ranks[0]["host"] != ranks[1]["host"]
        assert ("a rank failed" in out.read_text()) == (action in ("train 0", "train 1"))
        until(lambda: not any(node.processes("sleep 3011") for node in cell.hosts), 60, 0.2)
