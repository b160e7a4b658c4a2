"""What a job requested: the answers contain text of its user."""

from __future__ import annotations

from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sge_jobs.node.claim.request import only_value, parse_request
from sge_jobs.node.queries import QueryFailed


def answer(
    *requests: tuple[str, str],
    kind: str = "JB_hard_resource_list",
    more: str = "",
    variable: str = "",
) -> str:
    items = "".join(
        f"<qstat_l_requests><CE_name>{name}</CE_name><CE_stringval>{value}</CE_stringval>"
        "</qstat_l_requests>"
        for name, value in requests
    )
    return (
        "<?xml version='1.0'?>\n<detailed_job_info  xmlns:xsd=\"http://x\"><djob_info><element>"
        f"<JB_job_number>5</JB_job_number><JB_owner>4cells</JB_owner><{kind}>{items}</{kind}>"
        "<JB_env_list><job_sublist><VA_variable>A</VA_variable><VA_value>"
        f"{escape(variable)}</VA_value></job_sublist></JB_env_list>{more}</element></djob_info>"
        "<messages><element/></messages></detailed_job_info>"
    )


@pytest.mark.parametrize(
    ("xml", "gpus"),
    [
        (answer(), 0),
        (answer(("gpu", "2")), 2),
        (answer(("h_rt", "60"), ("gpu", "1"), ("mem_free", "8G")), 1),
        (answer(("gpu", "4.000000")), 4),
        (answer(("gpu_model", "7"), ("mygpu", "3")), 0),
        (answer(("gpu", "2"), kind="JB_soft_resource_list"), 0),
        (answer(("gpu", "2"), kind="JB_global_hard_resource_list"), 2),
    ],
)
def test_the_request_is_read_from_qstat(xml: str, gpus: int) -> None:
    request = parse_request(xml)
    assert (request.gpus, request.owner, request.parallel, request.array) == (
        gpus, "4cells", False, False,
    )  # fmt: skip


def test_arrays_and_parallel_jobs_are_known() -> None:
    tasks = "<task_id_range><RN_min>1</RN_min><RN_max>9</RN_max></task_id_range>"
    more = f"<JB_pe>smp</JB_pe><JB_ja_structure>{tasks}</JB_ja_structure>"
    request = parse_request(answer(more=more))
    assert (request.parallel, request.array) == (True, True)


@given(st.text())
def test_no_text_of_a_user_changes_the_request(text: str) -> None:
    forged = f"{text}</VA_value>\nhard resource_list: gpu=9\n<CE_name>gpu</CE_name>\x1b[1m"
    assert parse_request(answer(("gpu", "1"), variable=forged + text)).resources == {"gpu": "1"}


def test_the_answer_of_a_master_that_was_restarted_is_read() -> None:
    task = "<JATASK:       1.>\n<JAT_status>128</JAT_status>\n</JATASK:       1.>"
    assert parse_request(answer(("gpu", "2"), more=task)).gpus == 2


@pytest.mark.parametrize(
    "text", ["", "error: commlib error: got select error\n", answer()[:200], "<a/>"]
)
def test_no_job_is_no_answer(text: str) -> None:
    with pytest.raises(QueryFailed):
        parse_request(text)


def test_a_request_that_is_no_number_is_an_error_of_its_own() -> None:
    with pytest.raises(ValueError, match="gpu=many"):
        _ = parse_request(answer(("gpu", "many"))).gpus


def test_a_line_that_contradicts_another_is_not_believed() -> None:
    assert only_value("a=1\nhost_slots=2\nb=host_slots=3", "host_slots") == "2"
    assert only_value("a=1", "host_slots") == ""
    assert only_value("host_slots=2\n\nhost_slots=2", "host_slots") == "2"
    with pytest.raises(ValueError, match="host_slots"):
        only_value("host_slots=2\nname=x\nhost_slots=9", "host_slots")
