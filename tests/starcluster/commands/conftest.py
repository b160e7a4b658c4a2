"""A home whose config selects a server in front of moto, and the command in it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from starcluster.config import config
from tests import commands
from tests.starcluster.front import Front, in_front_of

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def front(aws: str) -> Iterator[Front]:
    """The server; tests set its answers."""
    with in_front_of(aws) as found:
        found.hourly = {"t3.micro": 0.5}
        found.monthly = {"gp2": 0.1, "gp3": 0.08}
        yield found


@pytest.fixture
def big(settings: config.Config, front: Front, tmp_path: Path) -> Run:
    """A function that runs ``starcluster`` with the template ``big``."""
    path = settings.path
    path.write_text(f"{path.read_text()}[aws info]\naws_endpoint_url = {front.address}\n")

    def call(*words: str, answer: str = "") -> subprocess.CompletedProcess[str]:
        given = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
        environment = os.environ | given | {"HOME": str(tmp_path)}
        words = ("-c", str(path), "-r", "us-east-1", *words)
        return commands.starcluster(*words, stdin=answer, env=environment, cwd=tmp_path)

    return call
