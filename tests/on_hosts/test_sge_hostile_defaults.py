"""Default options and variables of users, who can write anything there, break none of our calls."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.on_hosts.cell_commands import door
from tests.on_hosts.conftest import MakeSearch
from tests.testbed.cell import SGE_ROOT, UID, Cell
from tests.waiting import until

pytestmark = pytest.mark.sge

QSTAT = [
    *("-xml", "-ext", "-urg", "-pri", "-f", "-F gpu", "-explain a", "-s r", "-u nobody", "-ne"),
    *("-ncb", "-t", "-q none", "-q all.q@node001", "-U nobody", "-pe smp", "-l gpu=9", "-g c"),
    *("-l arch=none", "-g d", "-g t", "-j", "-j 1", "-qs d", "-xml\n-q none\n# -l x=1\n-l gpu=9"),
]
QSUB = [
    *("-verify", "-help", "-t 1-5", "-h", "-w v", "-w p", "-now y", "-pe smp 3", "-b y"),
    *("-soft", "-hard -l gpu=1 -soft", "-a 203001010000", "-hold_jid 1", "-i /nonexistent"),
    *("-o /nonexistent -j n", "-N other -S /bin/false", "-C '#' -cwd -terse", "-ckpt nosuch"),
    *("-r n -notify", "-inherit", "-clear"),
]
VARIABLES = {
    "SGE_LONG_QNAMES": "-1",
    "SGE_SINGLE_LINE": "true",
    "SGE_DEBUG_LEVEL": "2 2 2 2 2 2 2 2",
    "SGE_DEBUG_TARGET": "stdout",
    "SGE_ENABLE_MSG_ID": "1",
    "SGE_LOAD_AVG": "np_load_avg",
    "SGE_QSTAT_ENV_DEBUG": "1",
    "MORE_INFO": "1",
    "LC_ALL": "de_DE.UTF-8",
    "LANGUAGE": "de",
    "TZ": "Asia/Tokyo",
}
SUBMIT = (
    "spec = dict(argv=('sleep', '3000'), directory=Path('/tmp'), log=Path.home() / 'log')\n"
    "def send(name, gpus=0, **more):\n"
    "    return q.submit(JobSpec(name=name, resources=Resources(gpus=gpus, **more), **spec))\n"
)
LOOK = "show([[j.id, j.name, j.status.value, j.host, j.gpus, j.slots, j.task] for j in q.jobs()])\n"


@pytest.fixture(autouse=True)
def clean(cell: Cell) -> Iterator[None]:
    """Delete the files and all jobs after each test."""
    yield
    for name in (".sge_qstat", ".sge_request"):
        (cell.home / name).unlink(missing_ok=True)
        cell.master.run("rm", "-f", f"{SGE_ROOT}/default/common/{name[1:]}")
    cell.run("qdel", "-f", "-u", "*")
    cell.wait_idle()


def give(cell: Cell, name: str, text: str) -> None:
    (cell.home / name).write_text(f"{text}\n")


@pytest.mark.parametrize("everywhere", [False, True], ids=["user", "cell"])
def test_no_default_of_qstat_hides_a_job(cell: Cell, everywhere: bool) -> None:
    code = (
        "ids = [send('run', 1), send('never', 3), send('two', 1, slots=2),"
        " q.submit(JobSpec(name='broken', argv=('true',), directory=Path('/nope'))),"
        " q.submit(JobSpec(name='array', tasks='1-30', concurrent_tasks=1, **spec))]\nshow(ids)\n"
    )
    (ids,) = door(cell, SUBMIT + code)
    broken = ids[3]  # type: ignore[index]

    def jobs() -> list[list[object]]:
        (rows,) = door(cell, LOOK)
        return sorted(rows)  # type: ignore[type-var, arg-type]

    def is_settled() -> bool:
        states = [row[2] for row in jobs()]
        return states.count("running") == 3 and "error" in states

    until(is_settled, 60, 0.2)
    plain = jobs()
    (reason,) = door(cell, f"show(q.error_reason({broken!r}))")
    (idle,) = door(cell, f"show(q.obstacle({ids[1]!r}))")  # type: ignore[index]
    assert "/nope" in str(reason)
    assert "hc:gpu=2" in idle["reason"]  # type: ignore[index]
    failed = {}
    for options in QSTAT:
        if everywhere:
            cell.master.write(f"{SGE_ROOT}/default/common/sge_qstat", f"{options}\n")
        else:
            give(cell, ".sge_qstat", options)
        found, same = door(cell, f"{LOOK}show(q.error_reason({broken!r}))")
        unmerged = "-g d" in options or "-g t" in options or options == "-t"
        rows = sorted(found)  # type: ignore[type-var, arg-type]
        kept = [row for row in rows if not unmerged or row[1] not in ("array", "two")]
        wanted = [row for row in plain if not unmerged or row[1] not in ("array", "two")]
        if same != reason or [r[:6] for r in kept] != [r[:6] for r in wanted]:
            failed[options] = (kept, same)
    assert not failed, (plain, failed)


def test_no_default_of_qsub_changes_how_a_job_is_submitted(cell: Cell) -> None:
    failed = {}
    for options in QSUB:
        give(cell, ".sge_request", options)
        (id,) = door(cell, f"{SUBMIT}show(send('x', 3))")
        (rows,) = door(cell, LOOK)
        if rows != [[id, "x", "pending", "", 3, 1, ""]]:
            failed[options] = rows
        described = cell.run("qstat", "-j", str(id)).stdout
        if (
            "soft resource_list" in described
            or "hard resource_list:         gpu=3" not in described
        ):
            failed[options] = described
        cell.run("qdel", str(id))
        cell.wait_idle()
    assert not failed


def test_defaults_of_qsub_that_place_and_account_jobs_are_kept(cell: Cell) -> None:
    text = "# site\n-l h_vmem=1G -q all.q@node001\n-soft -l mem_free=1M -A acct -p -10\n"
    give(cell, ".sge_request", text)
    (id,) = door(cell, f"{SUBMIT}show(send('x', 3))")
    described = cell.run("qstat", "-j", str(id)).stdout
    for words in (
        "h_vmem=1G,gpu=3",
        "soft resource_list:         mem_free=1M",
        "account:                    acct",
        "priority:                   -10",
        "hard_queue_list:            all.q@node001",
    ):
        assert words in described, described
    (other,) = door(cell, f"{SUBMIT}show(send('x', 3, queue='all.q@node002'))")
    described = cell.run("qstat", "-j", str(other)).stdout
    assert "hard_queue_list:            all.q@node002" in described


def test_an_option_that_cannot_be_overridden_is_named(cell: Cell) -> None:
    give(cell, ".sge_request", "-l h_vmem=1G\n-sync yes")
    code = "try: send('x')\nexcept SgeJobsError as error: show(str(error))\n"
    assert str(cell.home / ".sge_request") in str(door(cell, SUBMIT + code)[0])
    assert not cell.run("qstat", "-u", "*").stdout


def test_a_file_that_breaks_qstat_itself_is_named(cell: Cell) -> None:
    give(cell, ".sge_qstat", "-help")
    code = "try: q.jobs()\nexcept SgeJobsError as error: show(str(error))\n"
    assert str(cell.home / ".sge_qstat") in str(door(cell, code)[0])


def test_no_variable_changes_an_answer(cell: Cell) -> None:
    (id, other) = door(cell, f"{SUBMIT}show(send('x', 1)); show(send('y', 3))")
    until(lambda: "running" in str(door(cell, LOOK)), 30, 0.2)
    check = (
        f"{LOOK}show([[h.name, h.gpus, h.gpus_used, h.slots] for h in q.hosts()])\n"
        "from sge_jobs.cell import Qconf\ncell = Qconf().read(['all.q'])\n"
        "show([sorted(cell.queues['all.q'].items()), sorted(cell.hosts), cell.complexes])\n"
        f"show(q.error_reason({id!r})); show(q.obstacle({other!r}).key)\n"
    )
    set_all = f"import os; os.environ.update({VARIABLES!r})\n"
    assert door(cell, set_all + check) == door(cell, check)


def test_a_search_with_hostile_files_runs(cell: Cell, make_search: MakeSearch) -> None:
    give(cell, ".sge_qstat", "-xml -q none -l arch=none -s z")
    give(cell, ".sge_request", "-t 1-5 -h -w v -soft")
    search = make_search(trials=6)
    for name in (".sge_qstat", ".sge_request"):
        os.chown(cell.home / name, UID, UID)
    controller = search.start("--queue-ahead=2")
    until(lambda: len(search.runs()) >= 3, 60, 0.2)
    controller.kill()
    search.start("--queue-ahead=2").end()
    (cell.home / ".sge_qstat").unlink()
    search.assert_complete()
    assert len(search.runs()) == search.n_trials
