"""The word that encodes who uses each GPU."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sge_jobs.gpu_state import MAX_LENGTH, GpuStatus, GpuUse, Intruder, count, decode, encode

words = st.text(st.characters(blacklist_categories=["Cs", "Cc", "Zl", "Zp", "Cn"]), max_size=12)
printable = words.filter(str.isprintable)
numbers = st.integers(1, 10**12)
uses = st.builds(
    GpuUse,
    index=st.integers(0, 99),
    uuid=st.text(string.ascii_letters + string.digits + "-", min_size=1, max_size=40),
    status=st.sampled_from(GpuStatus),
    job=st.one_of(st.just(""), numbers.map(str)),
    task=st.one_of(st.just(""), numbers.map(str)),
    user=printable,
    since=numbers,
    intruders=st.lists(
        st.builds(Intruder, pid=numbers, command=printable, foreign=st.booleans()), max_size=2
    ).map(tuple),
)


@given(st.lists(uses, max_size=3))
def test_what_is_written_is_read_again(gpus: list[GpuUse]) -> None:
    word = encode(gpus)
    assert set(word) <= set(string.ascii_letters + string.digits + "._-~+/*")
    if len(word) < MAX_LENGTH // 2:
        assert decode(word) == tuple(gpus)


@pytest.mark.parametrize("number", [0, 1, 8, 16, 56, 200])
def test_it_fits_however_many_gpus_and_intruders_there_are(number: int) -> None:
    gpus = [
        GpuUse(
            index=place, uuid=f"MIG-{place:08x}-1234-1234-1234-1234567890ab",
            status=GpuStatus.OUTLIVED, job=str(1000000 + place), task="1", user="somebody",
            since=1700000000, intruders=(Intruder(pid=place + 1, command="python3 ä"),) * 9,
        )
        for place in range(number)
    ]  # fmt: skip
    word = encode(gpus)
    assert len(word) <= MAX_LENGTH
    read = decode(word)
    for gpu, original in zip(read, gpus, strict=False):
        assert original.uuid.startswith(gpu.uuid)
        assert (gpu.job, gpu.user, gpu.status) == (original.job, original.user, original.status)
    assert len(read) == number or word.endswith(f"+*{number - len(read)}")
    assert count(word) == number


GOOD = "1+0/GPU-5a/h/12/3/alice/1700000000/s4711.python3"


def test_the_example_of_the_documentation() -> None:
    (gpu,) = decode(GOOD)
    assert (gpu.job, gpu.task, gpu.user, gpu.since) == ("12", "3", "alice", 1700000000)
    assert gpu.status is GpuStatus.HELD
    assert gpu.intruders == (Intruder(pid=4711, command="python3"),)


@pytest.mark.parametrize(
    "word",
    [
        "",
        "2+0/GPU/f////",
        "1+0/GPU/f///",  # a field too few
        "1+0//f////",  # no UUID
        "1+x/GPU/f////",
        "1+0/GPU/q////",  # no such status
        "1+0/GPU/h/$(rm)/1/u/5",
        "1+0/GPU/h/12/1/u/5/4711.x",  # neither s nor f
        "1+0/GPU/h/12/1/u/5/s4711",
        "1+0/GPU/h/12/1/u/5/s٣.x",  # a digit of another script
        "1+0/GPU/h/12/1/<b>/5",
        "1+0/GPU/h/12/1/u~4/5",
        "1+0/GPU/h/12/1/u~zz/5",
        "1+0/GPU/f/////" + "+0/GPU/f////" * 100,
        "1+*x",
        GOOD + "+",
    ],
)
def test_what_was_not_written_by_the_sensor_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(word)


def test_control_characters_of_a_command_reach_no_terminal() -> None:
    gpu = GpuUse(index=0, uuid="GPU", intruders=(Intruder(pid=1, command="a\x1b[31m\nb"),))
    assert decode(encode([gpu]))[0].intruders[0].command == "a?[31m?b"
