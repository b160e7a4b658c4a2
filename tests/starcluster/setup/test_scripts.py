"""The setup's scripts with their values, its archive of tools, and its settings of the cell."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import tarfile
from pathlib import Path

import pytest

from starcluster.errors import StarClusterError
from starcluster.logger import redact
from starcluster.setup import steps
from starcluster.setup.scripts import facts, script
from starcluster.setup.tools import archive
from starcluster.testing import FakeNode

SCRIPTS = Path(steps.__file__).parent / "sh"


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.sh")), ids=lambda path: path.name)
def test_every_script_is_posix_shell(path: Path) -> None:
    done = subprocess.run(["sh", "-n", path], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.sh")), ids=lambda path: path.name)
def test_no_script_writes_where_a_user_may_have_put_a_link(path: Path) -> None:
    assert not re.search(r">\s*/tmp/", path.read_text())


def test_a_node_without_a_report_is_named() -> None:
    text = (SCRIPTS / "reporting.sh").read_text()
    script = f"""
set -eu
qhost() {{ printf 'HOSTNAME ARCH NCPU LOAD\\n-\\nglobal - - -\\na lx 4 0.1\\nb lx 4 -\\n'; }}
tell() {{ echo "$@"; }}
until_true() {{ shift; "$@"; }}
HOSTS='a b c' SECONDS_LEFT=1
{text[text.index("silent()") :]}"""
    done = subprocess.run(["sh", "-s"], input=script, capture_output=True, text=True, check=True)
    assert done.stdout == "silent b\nsilent c\n"


def part_of(name: str, first: str, last: str, then: str, *, path: Path) -> list[str]:
    """Run a part of a script and then ``then``; programs in ``path`` have precedence."""
    text = (SCRIPTS / name).read_text()
    part = text[text.index(first) : text.index(last) if last else len(text)]
    script = f"set -eu\nPATH={shlex.quote(str(path))}:$PATH\n{part}\n{then}\n"
    argv = ["sh", "-s"]
    done = subprocess.run(argv, input=script, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("words", "tries", "end"),
    [
        ("E: Could not get lock /var/lib/apt/lists/lock. It is held by process 9", 3, 0),
        ("W: Failed to fetch http://mirror/Packages  File has unexpected size", 3, 0),
        ("E: Unable to locate package gridengine-exec", 1, 1),
    ],
)
def test_only_what_passes_is_tried_again(tmp_path: Path, words: str, tries: int, end: int) -> None:
    then = f"""
log={tmp_path}/log PAUSE_S=0 count=0
work() {{
    count=$((count + 1))
    [ $count -eq 3 ] || {{ echo '{words}'; return 1; }}
}}
end=0
retry_transient work || end=$?
echo $count $end
"""
    output = part_of("apt.sh", "retry_transient()", "", then, path=tmp_path)
    assert output == [f"{tries} {end}"]


def test_packages_wait_for_cloud_init_which_runs_the_users_scripts_last(tmp_path: Path) -> None:
    stub = tmp_path / "cloud-init"
    stub.write_text(f"#!/bin/sh\necho $* >{tmp_path}/asked\nexit 2\n")
    stub.chmod(0o755)
    output = part_of(
        "prepare.sh", "! command -v cloud-init", "need mount.nfs", "echo on", path=tmp_path
    )
    assert output == ["on"]
    assert (tmp_path / "asked").read_text() == "status --wait\n"


def test_plugins_install_once_others_have_fetched_the_lists(tmp_path: Path) -> None:
    apt = """#!/bin/sh
cd "${0%/*}"
case $* in
    *" update"*) echo x >>updates; [ $(wc -l <updates) -eq 3 ] && touch fetched ;;
    *" install"*) [ -e fetched ] && echo installed ;;
esac
"""
    for name, text in (("apt-get", apt), ("sleep", "#!/bin/sh\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    node = FakeNode()
    node.ssh.answer("apt-get")
    node.apt_install("htop")
    argv = ["bash", "-c", node.ssh.ran[-1]]
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(argv, check=True, capture_output=True, text=True, env=environment)
    assert done.stdout == "installed\n"


def test_values_reach_a_script_as_they_are() -> None:
    value = "a 'b' \"c\" $HOME `id` ; exit 3\nd \\ é"
    text = script("queue", {"HOSTS": value}).partition("\nset -eu\n")[0]
    text += '\nprintf %s "$HOSTS"'
    done = subprocess.run(["sh", "-s"], input=text, capture_output=True, text=True, check=True)
    assert done.stdout == value


def test_facts_are_told_by_name_and_nonsense_is_refused() -> None:
    found = facts("Reading lists\nfact new node001\nfact new node002\nfact home /home/a b\n")
    assert found == {"new": ["node001", "node002"], "home": ["/home/a b"]}
    with pytest.raises(StarClusterError):
        facts("fact gpus\n")


def test_the_archive_is_always_the_same_and_only_root_can_change_what_comes_of_it() -> None:
    packed, digest = archive()
    archive.cache_clear()
    assert archive() == (packed, digest)
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        members = {member.name: member for member in tar.getmembers()}
    assert members["sge_jobs/node/gpu-starter"].mode == 0o755
    assert members["sge_jobs/cell/setup_plan.py"].mode == 0o644
    assert all(member.uid == 0 for member in members.values())
    assert not any("__pycache__" in name for name in members)


def test_exports_name_the_nodes_and_no_one_else() -> None:
    nodes = [FakeNode(name) for name in ("node001", "node002")]
    assert [node.private_ip_address for node in nodes] == ["10.0.0.2", "10.0.0.3"]
    lines = steps.exports(nodes, ["/home", "/data"]).splitlines()
    options = "(rw,async,no_root_squash,no_subtree_check)"
    assert lines == [f"{path} 10.0.0.2{options} 10.0.0.3{options}" for path in ("/home", "/data")]
    assert steps.exports([], ["/home"]) == ""


def test_what_must_be_set_before_the_daemons_start() -> None:
    assert "load_report_time 00:00:05" in steps.configuration().splitlines()
    assert "max_unheard 00:00:20" in steps.configuration().splitlines()


def test_secrets_are_not_for_the_log() -> None:
    key = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----"
    text = redact(f"echo {key}; AWS_SECRET_ACCESS_KEY=s3cr3t aws --token 'a b' password: x1")
    assert not any(word in text for word in ("abc", "s3cr3t", "a b", "x1"))
    assert redact("qconf -sq all.q") == "qconf -sq all.q"
    assert "1000" in redact("a" * 1000)
