"""What setup changes in a cell, and what it does not change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from sge_jobs.cell.changes import Change, ChangePlan
from sge_jobs.cell.desired import (
    FAULT_COMPLEX,
    FAULT_COMPLEX_KEPT,
    GPU_COMPLEX,
    SHARE_COMPLEX,
    STATE_COMPLEX,
    STATE_COMPLEX_CLOSED,
    DesiredCell,
)
from sge_jobs.cell.qconf_text import (
    CellConfig,
    cluster_default,
    complex_rows,
    list_values,
    parse_attributes,
)
from sge_jobs.cell.removal import plan_removal
from sge_jobs.cell.setup_plan import plan_setup

FRESH = CellConfig(
    complexes=(Path(__file__).parents[1] / "answers" / "complexes.txt").read_text(),
    callers=("master", "node1", "node2"),
    hosts={"node1": {"complex_values": "NONE"}, "node2": {"complex_values": "license=1"}},
    queues={
        "all.q": {
            "qname": "all.q",
            "pe_list": "NONE",
            "rerun": "FALSE",
            "load_thresholds": "np_load_avg=1.75",
            "starter_method": "NONE",
        }
    },
    scheduler={
        "algorithm": "default",
        "schedule_interval": "0:0:15",
        "flush_submit_sec": "0",
        "flush_finish_sec": "0",
    },
    configuration={
        "load_sensor": "none",
        "load_report_time": "00:00:40",
        "max_unheard": "00:05:00",
        "reschedule_unknown": "00:00:00",
        "qmaster_params": "none",
        "execd_params": "none",
        "reporting_params": "accounting=true flush_time=00:00:15",
    },
)
DESIRED = DesiredCell(
    queue="all.q",
    starter=PurePosixPath("/opt/sge_jobs/node/gpu-starter"),
    sensor=PurePosixPath("/opt/sge_jobs/node/gpu-sensor"),
    gpus_everywhere=2,
)
FRESH_CELL = f"""\
qconf -Mc FILE
    {GPU_COMPLEX}
    {SHARE_COMPLEX}
    {STATE_COMPLEX}
    {FAULT_COMPLEX}
qconf -mattr exechost complex_values gpu=2,gpu_share=2.001 node1
qconf -mattr exechost complex_values gpu=2,gpu_share=2.001 node2
qconf -Ap FILE
    pe_name smp
    allocation_rule $pe_slots
qconf -aattr queue pe_list smp all.q
qconf -rattr queue starter_method /opt/sge_jobs/node/gpu-starter all.q
qconf -rattr queue rerun TRUE all.q
qconf -rattr queue load_thresholds NONE all.q
qconf -Msconf FILE
    schedule_interval 0:0:1
    flush_submit_sec 1
    flush_finish_sec 1
qconf -Mconf global
    load_report_time 00:00:05
    qmaster_params ENABLE_FORCED_QDEL_IF_UNKNOWN=true
    reporting_params accounting=true flush_time=00:00:15 accounting_flush_time=00:00:00
    execd_params ENABLE_ADDGRP_KILL=true
    load_sensor /opt/sge_jobs/node/gpu-sensor
    max_unheard 00:00:20
    reschedule_unknown 00:01:00"""


def shown(made: ChangePlan) -> str:
    return "\n".join(map(str, made.changes))


def carried_out(cell: CellConfig, made: ChangePlan) -> CellConfig:
    """Return the cell after qconf has made the changes."""
    for change in made.changes:
        match change.arguments:
            case ["-Mc", _]:
                cell = replace(cell, complexes=change.text)
            case ["-Msconf", _]:
                cell = replace(cell, scheduler=parse_attributes(change.text))
            case ["-Mconf", _]:
                cell = replace(cell, configuration=parse_attributes(change.text))
            case ["-Ap", _]:
                found = parse_attributes(change.text)
                cell = replace(cell, parallel_environments={found["pe_name"]: found})
            case [_, "exechost", name, value, host]:
                values = list_values(cell.hosts[host].get(name, "")) | list_values(value)
                items = ",".join(f"{key}={text}" for key, text in values.items())
                hosts = {**cell.hosts, host: {**cell.hosts[host], name: items}}
                cell = replace(cell, hosts=hosts)
            case [_, "queue", name, value, queue]:
                queues = {queue: {**cell.queues[queue], name: value}}
                cell = replace(cell, queues=queues)
    return cell


def with_queue(**changed: str) -> CellConfig:
    return replace(FRESH, queues={"all.q": {**FRESH.queues["all.q"], **changed}})


def with_configuration(**changed: str) -> CellConfig:
    return replace(FRESH, configuration={**FRESH.configuration, **changed})


def test_a_fresh_cell_gets_everything() -> None:
    made = plan_setup(FRESH, DESIRED)
    assert shown(made) == FRESH_CELL
    assert (made.left, made.later) == ((), ())


def test_a_second_run_changes_nothing() -> None:
    done = carried_out(FRESH, plan_setup(FRESH, DESIRED))
    assert plan_setup(done, DESIRED) == ChangePlan()


def test_a_host_that_the_master_does_not_answer_may_ask_from_now_on() -> None:
    made = plan_setup(replace(FRESH, callers=("master", "node1")), DESIRED)
    assert next(str(change) for change in made.changes) == "qconf -as node2"


def test_files_keep_what_was_in_them() -> None:
    texts = {change.arguments[0]: change.text for change in plan_setup(FRESH, DESIRED).changes}
    assert texts["-Mc"].startswith(FRESH.complexes)
    assert "algorithm default\n" in texts["-Msconf"]
    changes = plan_setup(FRESH, DESIRED).changes
    assert [c.file_name for c in changes if "-Mconf" in c.arguments] == ["global"]


@pytest.mark.parametrize(
    ("cell", "facts"),
    [
        (
            replace(FRESH, complexes=f"{FRESH.complexes}gpu gpu INT <= YES YES 0 0\n"),
            ("complex gpu: gpu gpu INT <= YES YES 0 0", GPU_COMPLEX),
        ),
        (
            replace(FRESH, hosts={"node1": {"complex_values": "gpu=4"}}),
            ("host node1: gpu=4", "--gpus node1=2"),
        ),
        (
            with_queue(starter_method="/site/starter"),
            (
                "queue all.q: starter_method /site/starter",
                'exec /opt/sge_jobs/node/gpu-starter "$@"',
            ),
        ),
        (
            with_queue(load_thresholds="np_load_avg=4"),
            ("queue all.q: load_thresholds np_load_avg=4", "NONE"),
        ),
        (
            replace(FRESH, parallel_environments={"smp": {"allocation_rule": "$fill_up"}}),
            ("parallel environment smp: allocation_rule $fill_up", "$pe_slots"),
        ),
        (
            replace(FRESH, scheduler={**FRESH.scheduler, "schedule_interval": "0:0:3"}),
            ("scheduler: schedule_interval 0:0:3", "0:0:1"),
        ),
        (
            with_configuration(max_unheard="00:10:00"),
            ("configuration: max_unheard 00:10:00", "00:00:20"),
        ),
        (
            with_configuration(load_report_time="00:02:00"),
            ("configuration: load_report_time 00:02:00", "00:00:05"),
        ),
        (
            with_configuration(execd_params="ENABLE_ADDGRP_KILL=false"),
            ("configuration: execd_params ENABLE_ADDGRP_KILL=false", "true"),
        ),
    ],
)
def test_what_a_site_set_is_left_alone_and_named(cell: CellConfig, facts: tuple[str, ...]) -> None:
    made = plan_setup(cell, DESIRED)
    assert any(all(fact in left for fact in facts) for left in made.left), made.left
    name = facts[0].split(": ")[1].split()[0]
    new = [line for change in made.changes for line in change.lines]
    assert not [line for line in new if line.startswith(f"{name} ")]


def test_a_sensor_of_one_host_that_overrides_ours_is_named() -> None:
    (left,) = plan_setup(replace(FRESH, local={"node1": {"load_sensor": "/site/x"}}), DESIRED).left
    for fact in ("host node1", "load_sensor /site/x", str(DESIRED.sensor)):
        assert fact in left


def test_additions_stand_beside_what_a_site_has() -> None:
    cell = with_configuration(load_sensor="/site/a,/site/b", execd_params="KEEP_ACTIVE=true X=1")
    cell = replace(cell, queues=with_queue(pe_list="orte mpi").queues)
    text = shown(plan_setup(cell, DESIRED))
    assert "load_sensor /site/a,/site/b,/opt/sge_jobs/node/gpu-sensor" in text
    assert "execd_params KEEP_ACTIVE=true X=1 ENABLE_ADDGRP_KILL=true" in text
    assert "-aattr queue pe_list smp all.q" in text


def test_programs_of_an_earlier_installation_are_replaced() -> None:
    cell = with_configuration(load_sensor="/old/sge_jobs/node/gpu-sensor,/site/b")
    queues = with_queue(starter_method="/old/sge_jobs/node/gpu-starter").queues
    made = plan_setup(replace(cell, queues=queues), DESIRED)
    assert "starter_method /opt/sge_jobs/node/gpu-starter" in shown(made)
    assert "load_sensor /site/b,/opt/sge_jobs/node/gpu-sensor" in shown(made)
    assert made.left == ()


def test_a_named_host_gets_the_number_it_was_given() -> None:
    cell = replace(FRESH, hosts={"a": {"complex_values": "gpu=4"}, "b": {"complex_values": "NONE"}})
    made = plan_setup(cell, replace(DESIRED, gpus={"a": 8}, gpus_everywhere=None))
    assert "complex_values gpu=8,gpu_share=8.001 a" in shown(made)
    assert "exechost complex_values gpu=2 b" not in shown(made)
    more = replace(DESIRED, gpus={"a": 9, "b": 9})
    hosts = carried_out(cell, made).hosts | {"b": {"complex_values": "gpu=4,gpu_share=1.5"}}
    text = shown(plan_setup(replace(cell, hosts=hosts), more))
    assert "complex_values gpu=9,gpu_share=9.001 a" in text
    assert "complex_values gpu=9 b" in text  # the site chose its number of shares


def test_undo_takes_the_programs_out_and_nothing_of_the_site() -> None:
    done = carried_out(with_configuration(load_sensor="/site/a"), plan_setup(FRESH, DESIRED))
    done = replace(
        done,
        configuration={**done.configuration, "load_sensor": f"/site/a,{DESIRED.sensor}"},
        queues={
            **done.queues,
            "old.q": {"starter_method": "/old/sge_jobs/node/gpu-starter"},
            "site.q": {"starter_method": "/site/starter"},
            "some.q": {"starter_method": f"NONE,[node1={DESIRED.starter}]"},
        },
    )
    made = plan_removal(done)
    assert shown(made) == (
        "qconf -rattr queue starter_method NONE all.q\n"
        "qconf -rattr queue starter_method NONE old.q\n"
        "qconf -Mconf global\n    load_sensor /site/a"
    )
    assert made.left[:2] == (
        "queue site.q: starter_method /site/starter",
        f"queue some.q: starter_method NONE,[node1={DESIRED.starter}]",
    )
    assert "complex gpu" in made.left
    assert plan_removal(FRESH).changes == ()
    only_ours = with_configuration(load_sensor=str(DESIRED.sensor))
    assert "load_sensor none" in shown(plan_removal(only_ours))


def test_a_resource_map_of_as_many_devices_stays() -> None:
    cell = replace(FRESH, hosts={"node1": {"complex_values": "gpu=2(GPU-a GPU-b),license=1"}})
    made = plan_setup(cell, DESIRED)
    assert "complex_values" not in shown(made)
    assert made.left == ()


def test_a_sensor_gives_the_number_of_a_host_that_has_none() -> None:
    desired = replace(DESIRED, gpus_everywhere=None, sensed={"node1": 4})
    text = shown(plan_setup(FRESH, desired))
    assert "complex_values gpu=4,gpu_share=4.001 node1" in text
    assert "node2" not in text


def test_running_hosts_first_report_often_and_only_then_count_as_lost() -> None:
    """If max_unheard is lowered first, a host that still reports every 40 s loses its jobs."""
    up = {
        "node1": {"complex_values": "gpu=2,gpu_share=2", "load_values": "load_avg=0.1,num_proc=2"}
    }
    cell = replace(FRESH, hosts=up)
    made = plan_setup(cell, DESIRED)
    assert "max_unheard" not in shown(made)
    assert made.wait_s == 90
    (later,) = made.later
    assert later.lines == ("max_unheard 00:00:20", "reschedule_unknown 00:01:00")
    assert "load_report_time 00:00:05\n" in later.text
    # A report of the sensor shows that the host has the new configuration.
    reporting = {"node1": {**up["node1"], "load_values": "load_avg=0.1,gpu_state=1"}}
    after = replace(carried_out(cell, made), hosts=reporting)
    assert shown(plan_setup(after, DESIRED)) == (
        "qconf -Mconf global\n    max_unheard 00:00:20\n    reschedule_unknown 00:01:00"
    )
    assert shown(plan_setup(carried_out(cell, made), DESIRED, waited=True)).endswith(
        "unknown 00:01:00"
    )


@pytest.mark.parametrize(
    "cell",
    [
        with_configuration(load_report_time="00:02:00"),
        replace(FRESH, local={"node1": {"load_report_time": "00:01:30"}}),
    ],
)
def test_hosts_that_report_seldom_by_a_sites_wish_are_not_counted_as_lost(cell: CellConfig) -> None:
    made = plan_setup(cell, DESIRED)
    assert "max_unheard" not in shown(made)
    assert any("max_unheard" in left and "load_report_time" in left for left in made.left)


def test_continued_lines_are_one() -> None:
    text = "#global:\nload_sensor none\nparams a=1 \\\n       b=2\n\nempty\n"
    found = parse_attributes(text)
    assert found == {"load_sensor": "none", "params": "a=1 b=2", "empty": ""}


def test_small_parsers() -> None:
    assert complex_rows("#name s\ngpus g INT <= YES YES 0 0\n")["g"][0] == "gpus"
    assert list_values("gpu=2,license=1") == {"gpu": "2", "license": "1"}
    assert list_values("NONE") == {}
    assert cluster_default("NONE,[node1=/x y]") == "NONE"


def test_a_site_can_keep_faulty_hosts_in_the_rotation() -> None:
    keeps = replace(DESIRED, keeps_hosts=True)
    assert FAULT_COMPLEX_KEPT in str(plan_setup(FRESH, keeps).changes)
    others = f"{GPU_COMPLEX}\n{SHARE_COMPLEX}\n{STATE_COMPLEX}\n"
    with_fault = replace(FRESH, complexes=f"{others}{FAULT_COMPLEX}\n")
    change = next(c for c in plan_setup(with_fault, keeps).changes if c.arguments[0] == "-Mc")
    assert change.text == f"{others}{FAULT_COMPLEX_KEPT}\n"
    for complexes, wish in ((with_fault.complexes, DESIRED), (change.text, keeps)):
        same = plan_setup(replace(FRESH, complexes=complexes), wish)
        assert "-Mc" not in [change.arguments[0] for change in same.changes]
    back = plan_setup(replace(FRESH, complexes=change.text), DESIRED).changes
    assert with_fault.complexes in [change.text for change in back]


def test_setup_with_and_without_the_restriction_of_devices() -> None:
    closes = replace(DESIRED, restricts_devices=True)
    complexes = f"{GPU_COMPLEX}\n{SHARE_COMPLEX}\n{STATE_COMPLEX}\n{FAULT_COMPLEX}\n"
    (change,) = _complex_changes(complexes, closes)
    closed = f"{GPU_COMPLEX}\n{SHARE_COMPLEX}\n{FAULT_COMPLEX}\n{STATE_COMPLEX_CLOSED}\n"
    assert change.text == closed
    assert _complex_changes(closed, closes) == []
    assert _complex_changes(closed, DESIRED) == [], "it stays, for a setup without the option"
    (back,) = _complex_changes(closed, replace(DESIRED, restricts_devices=False))
    assert sorted(back.text.splitlines()) == sorted(complexes.splitlines())


def _complex_changes(complexes: str, wish: DesiredCell) -> list[Change]:
    made = plan_setup(replace(FRESH, complexes=complexes), wish)
    return [change for change in made.changes if change.arguments[0] == "-Mc"]
