"""What the starter executes so that files of the user do not change the GPUs of a job."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sge_jobs.node.claim.command import Command
from sge_jobs.node.claim.profile import after_profile

GPUS = {"CUDA_VISIBLE_DEVICES": "GPU-1", "EMPTY": ""}
BOURNE = "export CUDA_VISIBLE_DEVICES=GPU-1 EMPTY="
C_SHELL = 'setenv CUDA_VISIBLE_DEVICES "GPU-1"; setenv EMPTY ""'


def words(program: str, *argv: str, **environment: str) -> list[str]:
    return after_profile(Command(program, argv), environment, GPUS).argv


@pytest.mark.parametrize(
    "argv",
    [
        ("/bin/bash", "bash", "job"),
        ("/bin/ksh", "ksh", "-c", "x"),
        ("/bin/tcsh", "tcsh", "-f", "job"),
        ("/bin/zsh", "zsh", "-f", "job"),
        ("/bin/bash", "-bash"),
        ("/bin/bash", "-bash", "-c"),
        ("/bin/bash", "-bash", "-xs", "job"),
        ("/usr/bin/python3", "python3", "job"),
        ("/nowhere/job", "/nowhere/job"),
    ],
)
def test_shells_that_read_no_file_and_other_programs_stay(argv: tuple[str, ...]) -> None:
    assert words(*argv) == list(argv[1:])


def test_the_setting_is_before_the_commands() -> None:
    assert words("/bin/sh", "-sh", "-c", "x 'y'", "z") == ["-sh", "-c", f"{BOURNE}; x 'y'", "z"]
    assert words("/bin/csh", "csh", "-c", "x")[2] == f"{C_SHELL}; x"
    script = ["-c", f'{BOURNE}; . "$0"', "job", "a b"]
    assert words("/bin/bash", "-bash", "job", "a b") == ["-bash", *script]
    assert words("/bin/bash", "bash", "job", "a b", BASH_ENV="x") == ["bash", *script]
    assert words("/bin/zsh", "zsh", "job", "a b") == ["zsh", *script]


@pytest.mark.parametrize(
    ("first", "options"),
    [("#!/bin/bash -l", ["-l"]), ("#! /bin/bash --login", ["--login"]), ("#!/bin/env zsh", [])],
)
def test_the_first_line_of_a_program_names_its_shell(
    tmp_path: Path, first: str, options: list[str]
) -> None:
    job = tmp_path / "job"
    job.write_text(f"{first}\n:\n")
    assert words(str(job), "job", "a") == ["job", "a"], "it cannot be executed"
    job.chmod(0o755)
    assert words(str(job), "job", "a")[1:] == [*options, "-c", f'{BOURNE}; . "$0"', str(job), "a"]
    job.write_text("#!/bin/bash\n:\n")
    assert words(str(job), "job", "a") == ["job", "a"]


@pytest.mark.parametrize(
    ("text", "copied"),
    [
        ("#!/bin/csh\necho 1\n", "{}\necho 1\n"),
        ("echo 1\n", "{}\necho 1\n"),
        ("# a \\\necho 1\n", "{}\n# a \\\necho 1\n"),
        ("#" + "x" * 300 + "\necho 1", "{}\n#" + "x" * 300 + "\necho 1"),
        ("", "{}\n"),
    ],
)
def test_a_c_shell_reads_a_copy_of_its_script(tmp_path: Path, text: str, copied: str) -> None:
    job = tmp_path / "job"
    job.write_text(text)
    argv = words("/bin/tcsh", "-tcsh", str(job), "a")
    descriptor = int(argv[1].rpartition("/")[2])
    try:
        assert Path(argv[1]).read_text() == copied.format(C_SHELL)
        assert (argv[0], argv[2:]) == ("-tcsh", ["a"])
    finally:
        os.close(descriptor)


def test_a_script_that_cannot_be_copied_runs_as_it_is(tmp_path: Path) -> None:
    argv = ["-tcsh", str(tmp_path)]
    assert words("/bin/tcsh", *argv) == argv
