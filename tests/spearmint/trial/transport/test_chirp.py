"""Parcels through the proxy of HTCondor."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spearmint.trial.transport.chirp import Chirp
from tests.spearmint.trial.transport.proxy import proxy_of
from tests.spearmint.trial.transport.sides import Job


def test_a_hundred_megabytes(job: Job, tmp_path: Path) -> None:
    host = job.host()
    block = os.urandom(1 << 20)
    with host.output.open("wb") as file:
        for _ in range(100):
            file.write(block)
    path = host.pack()
    with proxy_of(job.box) as proxy:
        Chirp(proxy.configuration(tmp_path / "chirp")).send(path, path.name)
    job.receive()
    assert job.output.stat().st_size == 100 << 20
    with job.output.open("rb") as file:
        assert all(file.read(1 << 20) == block for _ in range(100))


def test_the_proxy_fails(job: Job, tmp_path: Path) -> None:
    host = job.host()
    host.prints("x" * 100_000)
    path = host.pack()
    with proxy_of(job.box) as proxy:
        chirp = Chirp(proxy.configuration(tmp_path / "chirp"))
        proxy.fails_after = 10
        with pytest.raises(OSError, match="-6"):
            chirp.send(path, path.name)
        job.receive()
        assert not job.output.exists()
        proxy.fails_after, proxy.loses_answers = None, True
        for _ in range(2):  # it arrives, but the host does not know
            with pytest.raises(OSError, match="-17"):
                chirp.send(path, path.name)
            job.receive()
        proxy.loses_answers = False
        chirp.send(path, path.name)
        chirp.touch("a marker")
    job.receive()
    assert job.content()["output"] == "x" * 100_000
    assert (job.box / "a marker").exists()


def test_a_proxy_of_another_job(job: Job, tmp_path: Path) -> None:
    with proxy_of(job.box) as proxy:
        file = proxy.configuration(tmp_path / "chirp")
        file.write_text(file.read_text().replace("c00k1e", "guess"))
        with pytest.raises(OSError, match="cookie"):
            Chirp(file).touch("marker")
    with pytest.raises(ConnectionRefusedError):
        Chirp(file).touch("marker")
