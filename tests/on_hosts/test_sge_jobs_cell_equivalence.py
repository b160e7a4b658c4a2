"""In a real Grid Engine cell, jobs run with the starter exactly like without it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.testbed.cell import REPOSITORY, UID, Cell
from tests.waiting import until

pytestmark = pytest.mark.sge

HOST = "node001"
BOTH = f"GPU-{HOST}-0,GPU-{HOST}-1\n"
STARTER = REPOSITORY / "sge_jobs" / "node" / "gpu-starter"


@pytest.fixture
def clean(cell: Cell) -> Iterator[None]:
    yield
    cell.run("qdel", "-u", "*")
    cell.wait_idle()


PROBE = """#!/usr/bin/python3
import json, os, sys
def words(pid):
    text = open(f"/proc/{pid}/cmdline").read().split(chr(0))
    return ["JOB" if "job_scripts" in word else word for word in text]
ours = ("SGE_STARTER", "CUDA_", "JOB_", "TMP", "SGE_JOB_SPOOL_DIR", "HOSTNAME", "REQ", "PATH", "_")
env = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
status = open("/proc/self/status").read()
parent = words(os.getppid())
json.dump([sys.argv[1:], "shepherd" if "shepherd" in parent[0] else parent, env, os.getcwd(),
           status.split("SigIgn:")[1].split()[:4], os.umask(0), sys.stdin.read()], sys.stdout,
          sort_keys=True)
"""

PLAIN = 'echo plain $# "$@" $-; echo ${{0##*/}} | tr -s 0-9 N; {probe} "$@"\n'


def cases(home: Path) -> dict[str, list[str]]:
    """Write programs to a folder with a space in its name; return qsub's arguments by case."""
    folder = home / "a 'folder'"
    folder.mkdir()
    probe = folder / "probe.py"
    quoted = shlex.quote(str(probe))
    files = {
        probe: PROBE,
        home / "plain.sh": PLAIN.format(probe=quoted),
        home / "dash.sh": "#!/bin/dash\n" + PLAIN.format(probe=quoted),
        home / "job.py": PROBE,
    }
    for path, text in files.items():
        path.write_text(text)
        path.chmod(0o755)
    plain, dash, job = (str(home / name) for name in ("plain.sh", "dash.sh", "job.py"))
    binary, bare = ["-b", "y"], ["-b", "y", "-shell", "n"]
    return {
        "script": [plain, "x y", "", '"z"', "$HOME"],
        "script by sh": ["-S", "/bin/sh", plain, "1"],
        "script by dash": ["-S", "/bin/dash", dash, "1"],
        "script's own shell": [dash, "1"],
        "script of Python": [job, "1"],
        "script by Python": ["-S", "/usr/bin/python3", job, "1"],
        "command": [*binary, f"echo $HOME; {quoted}", "x y", "", '"q r"', "$SHELL"],
        "command on the path": [*binary, "python3", quoted, "x"],
        "command that is missing": [*binary, "/nonexistent/x"],
        "bare command": [*bare, str(probe), "x y", "", "$SHELL"],
        "bare command on the path": [*bare, "python3", str(probe), "x"],
        "bare script without a first line": [*bare, plain, "x y"],
        "variables": ["-v", "LC_CTYPE=C,FOO=a b,SHLVL=7,OLDPWD=/x", *bare, str(probe)],
    }


def outcome(cell: Cell, job: str, out: Path) -> tuple[str, list[str]]:
    def accounted() -> str:
        return cell.run("qacct", "-j", job).stdout

    until(lambda: "exit_status" in accounted(), 30, 0.1)
    # A login shell sets the variable after the profile: with -c, which it also shows in $-.
    text = out.read_text().replace('"-c", "export CUDA_VISIBLE_DEVICES=; . \\"$0\\"", ', "")
    text = text.replace("export CUDA_VISIBLE_DEVICES=; ", "").replace(" hBc\n", " hB\n")
    rows = [" ".join(line.split()) for line in accounted().splitlines()]
    ends = [row for row in rows if row.startswith(("failed", "exit_status"))]
    return re.sub(r"\d{2,}", "N", text), ends


@pytest.mark.parametrize("mode", ["unix_behavior", "posix_compliant", "script_from_stdin"])
def test_jobs_run_exactly_as_without_the_starter(cell: Cell, clean: None, mode: str) -> None:
    def observed(starter: str, arguments: dict[str, list[str]]) -> dict[str, tuple[str, list[str]]]:
        cell.qconf("-rattr", "queue", "starter_method", starter, "all.q")
        jobs = {}
        for place, (name, words) in enumerate(arguments.items()):
            out = folder / f"out{place}"
            out.unlink(missing_ok=True)
            options = ["-N", "probe", "-o", str(out), "-l", f"hostname={HOST}"]
            jobs[name] = (cell.submit("", *options, *words), out)
        cell.wait_idle()
        return {name: outcome(cell, *job) for name, job in jobs.items()}

    folder = cell.home / mode
    folder.mkdir()
    folder.chmod(0o777)
    arguments = cases(folder)
    if mode == "script_from_stdin":  # Grid Engine cannot run commands in this mode
        arguments = {name: words for name, words in arguments.items() if name.startswith("script")}
    cell.qconf("-rattr", "queue", "shell_start_mode", mode, "all.q")
    try:
        without = observed("NONE", arguments)
        with_it = observed(str(STARTER), arguments)
    finally:
        cell.qconf("-rattr", "queue", "starter_method", str(STARTER), "all.q")
        cell.qconf("-rattr", "queue", "shell_start_mode", "posix_compliant", "all.q")
    for name, expected in without.items():
        assert with_it[name] == expected, name
    probed = [name for name, (text, _) in without.items() if "[[" in text]
    assert len(probed) >= (4 if mode == "script_from_stdin" else 11), without


def test_qrsh_gets_its_gpu_and_runs_as_without_the_starter(cell: Cell, clean: None) -> None:
    def remote(*words: str) -> tuple[int, str]:
        argv = ["sh", "-c", f'cd {cell.home} && exec "$@"', "sh", "qrsh", "-now", "n", *words]
        done = cell.run(*argv, uid=UID)
        return done.returncode, done.stdout

    asked = ("-l", f"gpu=2,hostname={HOST}")
    assert remote(*asked, "echo $CUDA_VISIBLE_DEVICES; exit 3") == (3, BOTH)
    assert remote(*asked, "printenv", "CUDA_VISIBLE_DEVICES") == (0, BOTH)
    words = (("echo", "x  y", '"a  b"', "$HOME"), ("-noshell", "echo", "x  y", "$HOME"))
    mine = [remote(*one) for one in words]
    cell.qconf("-rattr", "queue", "starter_method", "NONE", "all.q")
    try:
        assert [remote(*one) for one in words] == mine
    finally:
        cell.qconf("-rattr", "queue", "starter_method", str(STARTER), "all.q")


BOURNE = "export CUDA_VISIBLE_DEVICES=0 BASH_ENV=/dev/null; FROM_FILE=1\n"
FILES = {  # shell: the file that it reads first, its text, and a first line that makes it read it
    "/bin/bash": (".bash_profile", BOURNE, "#!/bin/bash -l"),
    "/bin/sh": (".profile", BOURNE, "#!/bin/sh -l"),
    "/bin/tcsh": (".cshrc", "setenv CUDA_VISIBLE_DEVICES 0; set FROM_FILE=1\n", "#!/bin/tcsh"),
}


@pytest.mark.parametrize("shell", FILES)
def test_files_that_a_shell_reads_first_do_not_change_the_gpus_of_a_job(
    cell: Cell, clean: None, shell: str
) -> None:
    name, text, first = FILES[shell]
    (cell.home / name).write_text(text)
    say = 'echo "$FROM_FILE [$CUDA_VISIBLE_DEVICES]"'
    script, command = f"{first}\n{say}\n", ("-b", "y", "-N", "x", say)
    outs = cell.home / f"first{name}"
    outs.mkdir(mode=0o777)
    outs.chmod(0o777)
    try:
        for mode in ("posix_compliant", "script_from_stdin", "unix_behavior"):
            cell.qconf("-rattr", "queue", "shell_start_mode", mode, "all.q")
            ways: dict[str, tuple[str, ...]] = {"script": ()}
            if mode == "posix_compliant":
                ways["command"] = command
            for gpus in (0, 1):
                asked = ("-S", shell, "-l", f"gpu={gpus}") if gpus else ("-S", shell)
                for way, words in ways.items():
                    cell.submit(script, "-o", f"{outs}/{mode}-{way}-{gpus}", *asked, *words)
            cell.wait_idle()
    finally:
        cell.qconf("-rattr", "queue", "shell_start_mode", "posix_compliant", "all.q")
        (cell.home / name).unlink()
    found = {path.name: path.read_text().split() for path in outs.iterdir()}
    assert len(found) == 8
    assert all(words[-2:-1] == ["1"] for words in found.values()), found
    for out, words in found.items():
        assert words[-1].count("GPU-") == int(out[-1]), found
        assert words[-1] == "[]" or out[-1] == "1", found
