"""Commands whose standard streams are closed, read by nobody, or of an old encoding."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import starmint.streams
from sge_jobs.cli import streams
from tests import commands

COMMANDS = ("spearmint", "starcluster", "sge_jobs", "condor_jobs", "pycuda_nn")
_CLOSE = 'exec "$@" >&- 2>&- <&-'


def call(package: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", package, *arguments]


@pytest.mark.parametrize("package", COMMANDS)
def test_no_stream_is_open(package: str) -> None:
    done = subprocess.run(
        ["sh", "-c", _CLOSE, "sh", *call(package, "--version")], timeout=120, check=False
    )
    assert done.returncode == 0


@pytest.mark.parametrize("package", COMMANDS)
def test_nobody_reads_the_output(package: str) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    argv = call(package, "--version")
    done = subprocess.run(argv, stdout=writes, stderr=subprocess.PIPE, timeout=120, check=False)
    os.close(writes)
    assert (done.returncode, done.stderr) == (1, b"")


def test_no_file_takes_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    code = (
        "import os, sys\n"
        "from starmint.streams import open_closed_streams\n"
        "open_closed_streams()\n"
        "with open(sys.argv[1], 'w') as file:\n"
        "    print('a library prints')\n"
        "    os.system('echo a command prints')\n"
        "    file.write(str(file.fileno() > 2))\n"
    )
    file = tmp_path / "database"
    argv = ["sh", "-c", _CLOSE, "sh", sys.executable, "-c", code, str(file)]
    subprocess.run(argv, timeout=120, check=True)
    assert file.read_text() == "True"


@pytest.mark.parametrize(("encoding", "shown"), [("ascii", "ü 中"), ("latin-1", "ü \\u4e2d")])
def test_a_character_that_the_encoding_lacks_is_shown(encoding: str, shown: str) -> None:
    argv = call("sge_jobs", "submit", "--dry-run", "--", "ü 中")
    done = subprocess.run(
        argv,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "1"},
        capture_output=True,
        check=True,
        timeout=120,
    )
    assert shown in done.stdout.decode("utf-8" if encoding == "ascii" else encoding)


@pytest.mark.parametrize("package", COMMANDS)
def test_help_in_a_terminal_of_one_column(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1")
    done = commands.run(package, "--help")
    assert done.returncode == 0
    assert "xamples:" in done.stdout.replace("\n", "") or package in ("sge_jobs", "condor_jobs")


def test_a_network_is_trained_without_standard_error() -> None:
    train = call("pycuda_nn", "train", "--data", "digits", "--set", "epochs=1")
    argv = ["sh", "-c", 'exec "$@" 2>&-', "sh", *train]
    subprocess.run(argv, stdout=subprocess.DEVNULL, timeout=120, check=True)


@pytest.mark.parametrize("name", streams.__all__)
def test_the_copy_that_nodes_have_does_the_same(name: str) -> None:
    """Nodes get ``sge_jobs`` alone, so it cannot import the functions."""
    same = getattr(starmint.streams, name)
    assert inspect.getsource(getattr(streams, name)) == inspect.getsource(same)
