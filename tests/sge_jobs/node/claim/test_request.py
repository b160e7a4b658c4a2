"""The number of GPUs that a job requested."""

from __future__ import annotations

import pytest

from sge_jobs.node.claim.request import requested_gpus
from sge_jobs.node.queries import QueryFailed

JOB = "==============\njob_number:                 5\nowner:                      4cells\n"


@pytest.mark.parametrize(
    ("line", "gpus"),
    [
        ("", 0),
        ("hard resource_list:         gpu=2\n", 2),
        ("hard resource_list:         h_rt=60,gpu=1,mem_free=8G\n", 1),
        ("hard_resource_list:         gpu=4.000000\n", 4),
        ("hard resource_list:         gpu_model=7,mygpu=3\n", 0),
        ("soft resource_list:         gpu=2\n", 0),
        ("env_list:                   A=hard resource_list: gpu=9\n", 0),
    ],
)
def test_the_request_is_read_from_qstat(line: str, gpus: int) -> None:
    assert requested_gpus(JOB + line) == gpus


@pytest.mark.parametrize("text", ["", "error: commlib error: got select error\n"])
def test_no_job_is_no_answer(text: str) -> None:
    with pytest.raises(QueryFailed):
        requested_gpus(text)


def test_a_request_that_is_no_number_is_an_error_of_its_own() -> None:
    with pytest.raises(ValueError, match="gpu=many"):
        requested_gpus(JOB + "hard resource_list: gpu=many\n")
