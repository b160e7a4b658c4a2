"""The record in a lock file, which any user can write."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sge_jobs.node.claim.record import SIZE, Record, decode, encode

GOOD = Record(
    job="12", task="3", user="alice", boot="b-1", since=1700000000, group=20001, pid=4711,
    shepherd=4700, shepherd_started=123456,
)  # fmt: skip


def fields(record: Record | None) -> list[object]:
    return [] if record is None else [getattr(record, name) for name in Record.__slots__]


def test_what_is_written_is_read_again() -> None:
    assert len(encode(GOOD)) == SIZE
    assert fields(decode(encode(GOOD))) == fields(GOOD)
    assert GOOD.label == "12.3"


@given(st.text(max_size=300))
def test_a_strange_user_name_is_written_in_one_line_of_ascii(user: str) -> None:
    record = Record(job="1", user=user, boot="b")
    found = decode(encode(record))
    assert found is not None
    assert found.user.isascii()
    assert len(encode(record)) == SIZE


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * SIZE,
        b"x" * 100000,
        encode(GOOD)[:100],
        encode(GOOD).replace(b"group 20001", b"group -1   "),
        encode(GOOD).replace(b"group 20001", b"group 1e3  "),
        encode(GOOD).replace(b"user alice", b"user \x1b[31m"),
        encode(GOOD).replace(b"job 12\n", b"job \n  "),
        encode(GOOD).replace(b"pid 4711", b"pidd 471"),
        encode(GOOD).replace(b"since 1700000000", b"since 999999999999999999"),
        encode(GOOD).replace(b"task 3", b"task abc"),
    ],
)
def test_what_no_job_wrote_is_no_record(data: bytes) -> None:
    assert decode(data) is None


def test_noise_is_no_record_and_no_crash() -> None:
    noise = random.Random(1)
    for _ in range(2000):
        data = bytearray(encode(GOOD))
        for _ in range(noise.randrange(1, 5)):
            data[noise.randrange(200)] = noise.randrange(256)
        decode(bytes(data))
