"""A whole session of a user on real hosts behind a fake EC2, from createkey to terminate."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator

import pytest

from tests.on_hosts.secrecy import Watch, files_with, forms
from tests.on_hosts.user import PLUGIN, User
from tests.testbed.cloud import IMAGE, REPOSITORY, Cloud

pytestmark = [pytest.mark.sge, pytest.mark.slow]

AWS_SECRET = "wJalrXUtnFEMIexampleSecretOfTheAccount"  # noqa: S105 - of no account
USER_DATA = "the user data of this cluster is nobody's business"
CONFIG = f"""
[global]
default_template = small

[aws info]
aws_access_key_id = AKIAEXAMPLEOFACONFIG
aws_secret_access_key = {AWS_SECRET}

[cluster small]
keyname = mykey
cluster_size = 3
node_instance_type = g4dn.xlarge
node_image_id = {IMAGE}
plugins = mark
userdata_scripts = ~/.starcluster/first_boot

[plugin mark]
setup_class = mark.Mark
path = /etc/marked

[plugin nvidia_tune]
setup_class = starcluster_plugins.nvidia_tune.NvidiaTune
"""


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with Cloud() as made:
        folder = made.home / ".starcluster"
        (folder / "plugins").mkdir(parents=True)
        (folder / "plugins" / "mark.py").write_text(PLUGIN)
        (folder / "first_boot").write_text(f"#!/bin/sh\n# {USER_DATA}\ntouch /root/booted\n")
        (folder / "config").write_text(CONFIG)
        (folder / "config").chmod(0o600)
        yield made


def test_from_no_key_to_nothing_left(cloud: Cloud) -> None:
    user = User(cloud)
    with Watch() as watch:
        user.types("createkey", "mykey", "-o", str(cloud.home / "mykey.pem"), "-a")
        plans(user)
        starts(user)
        finds_what_was_set_up(user)
        hands_its_input_on_as_ssh_does(user)
        runs_a_plugin(user)
    keeps_secrets(user, watch)
    searches(user)
    grows_and_shrinks(user)
    stops_and_starts(user)
    restarts(user)
    ends(user)
    assert not [form for form in forms(AWS_SECRET) if form in user.said.encode()]


def plans(user: User) -> None:
    before = len(user.cloud.calls())
    output = user.types("start", "--dry-run", "gpucluster").stdout
    assert re.search(r"3 x g4dn\.xlarge .*\bmaster .*node002", output)
    assert "$1.58/h" in output
    assert re.search(r"^Quota: 12 vCPUs of G and VT on-demand instances.*\b64\b", output, re.M)
    made = [row["action"] for row in user.cloud.calls()[before:]]
    assert not [request for request in made if request.startswith(("Create", "Authorize"))]
    assert not user.cloud.nodes()


def starts(user: User) -> None:
    user.cloud.fail("RunInstances", "VcpuLimitExceeded", times=2)
    for words in ((), ("-V",)):  # at the check, and at the launch
        errors = user.types("--debug", "start", *words, "gpucluster", status=1).stderr
        assert "Traceback" in errors
        assert "VcpuLimitExceeded" in errors
    before = len(user.cloud.calls())
    user.types("--debug", "start", "gpucluster")
    names = (
        "CreateSecurityGroup",
        "AuthorizeSecurityGroupIngress",
        "RunInstances",
        "CreateTags",
    )
    rows = user.cloud.calls()[before:]
    made = [row["action"] for row in rows if row["action"] in names and not row["error"]]
    # The group allows its members and SSH before the launch, and each instance gets a name, and a
    # host key in two steps. One more marks the launch as done.
    expected = ["CreateSecurityGroup", *["AuthorizeSecurityGroupIngress"] * 2]
    expected += ["RunInstances"] + ["CreateTags"] * (3 + 1 + 2 * 3)
    assert made == expected
    assert user.states() == dict.fromkeys(("master", "node001", "node002"), "running")
    text = user.types("listclusters", "-s").stdout
    assert text.count("ssh up") == 3
    again = user.types("start", "gpucluster", status=1)
    assert re.search(r"'gpucluster'.*us-east-1.*\(running\)", again.stderr)


def finds_what_was_set_up(user: User) -> None:
    hosts = user.hosts()
    assert user.queues() == dict.fromkeys(hosts, "")
    for alias, host in hosts.items():
        assert host.run("hostname").stdout.strip() == alias
        assert host.run("cat", "/etc/marked").stdout == f"run {alias}\n"
        for other in hosts:
            assert host.run("getent", "hosts", other).stdout.split()[0] == hosts[other].ip
    script = "echo $(hostname) $CUDA_VISIBLE_DEVICES > where.$SGE_TASK_ID"
    command = f"qsub -sync y -cwd -j y -o /dev/null -l gpu=1 -t 1-3 -b y -N w {_quoted(script)}"
    user.types("sshmaster", "-u", "sgeadmin", "gpucluster", command)
    text = user.types("sshnode", "-u", "sgeadmin", "gpucluster", "node001", "cat where.*").stdout
    rows = [line.split() for line in text.splitlines()]
    assert len(rows) == 3
    assert {len(row) for row in rows} == {2}, rows  # each job has a GPU


def hands_its_input_on_as_ssh_does(user: User) -> None:
    starcluster = f"{sys.executable} -m starcluster"
    script = f"{starcluster} sshmaster gpucluster cat; echo then; cat"
    done = user.cloud.run("sh", "-c", script, stdin="one\ntwo\n")
    assert done.stdout == "one\ntwo\nthen\n"
    loop = f"while read line; do {starcluster} sm -n gpucluster echo $line; done"
    done = user.cloud.run("sh", "-c", loop, stdin="one\ntwo\n")  # without -n only one is printed
    assert done.stdout == "one\ntwo\n"


def _quoted(script: str) -> str:
    return f"bash -c \"'{script}'\"".replace("$", "\\$")


def runs_a_plugin(user: User) -> None:
    done = user.types("runplugin", "nvidia_tune")
    assert re.search("nvidia_tune .*3 nodes .*gpucluster", done.stdout)
    for host in user.hosts().values():
        assert "nvidia-smi" in host.run("ls", "/usr/local/bin").stdout
        assert host.run("nvidia-smi", "--query-gpu=persistence_mode").stdout.endswith("Enabled\n")
    wrong = user.types("runplugin", "nvidia_tun", status=2)
    assert "nvidia_tune" in wrong.stderr


def searches(user: User) -> None:
    source = str(REPOSITORY / "examples" / "branin")
    user.types("put", "-u", "sgeadmin", "gpucluster", source, ".")
    command = (
        "spearmint --driver=SGE --max-concurrent=3 --max-finished-jobs=6 --budget=20 "
        "--method=SequentialChooser branin/config.pb"
    )
    done = user.types("sshmaster", "-u", "sgeadmin", "gpucluster", command)
    assert "6" in done.stdout
    assert re.search(r"^Spent: \$\d+\.\d\d of the budget of \$20\.00", done.stdout, re.M)
    user.types("get", "-u", "sgeadmin", "gpucluster", "branin", "results")
    found = list((user.cloud.home / "results").rglob("result.json"))
    assert len(found) >= 6
    assert user.types("sshmaster", "gpucluster", "qstat -u '*'").stdout == ""


def grows_and_shrinks(user: User) -> None:
    user.types("addnode", "-n", "2", "gpucluster")
    hosts = user.hosts()
    assert sorted(hosts) == ["master", "node001", "node002", "node003", "node004"]
    assert user.queues() == dict.fromkeys(hosts, "")
    assert hosts["node004"].run("cat", "/etc/marked").stdout == "on_add_node node004\n"
    user.types("removenode", "--confirm", "-a", "node001,node003", "gpucluster")
    assert sorted(user.hosts()) == ["master", "node002", "node004"]
    assert sorted(user.queues()) == ["master", "node002", "node004"]
    marked = user.hosts()["master"].run("cat", "/etc/marked").stdout
    assert "removed node001\nremoved node003\n" in marked
    refused = user.types("removenode", "-c", "-a", "master", "gpucluster", status=2)
    assert "starcluster terminate gpucluster" in refused.stderr


def stops_and_starts(user: User) -> None:
    user.types("stop", "--confirm", "gpucluster")
    assert set(user.states().values()) == {"stopped"}
    assert not user.cloud.nodes()
    user.types("start", "-x", "gpucluster")
    assert user.queues() == dict.fromkeys(("master", "node002", "node004"), "")
    assert user.hosts()["node004"].run("ls", "/home/sgeadmin/branin").returncode == 0
    text = user.types("sshmaster", "-u", "sgeadmin", "gpucluster", "qrsh -b y hostname || true")
    assert text.returncode == 0


def restarts(user: User) -> None:
    before = {alias: host.pid for alias, host in user.hosts().items()}
    user.types("restart", "gpucluster")
    after = {alias: host.pid for alias, host in user.hosts().items()}
    assert before.keys() == after.keys()
    assert not set(before.values()) & set(after.values())
    assert user.queues() == dict.fromkeys(before, "")


def ends(user: User) -> None:
    done = user.types("terminate", "--confirm", "gpucluster")
    assert "gpucluster: master, node002, node004, security group @sc-gpucluster" in done.stdout
    assert user.clusters() == []
    assert not user.cloud.nodes()
    assert not list((user.cloud.home / ".starcluster" / "known_hosts").iterdir())
    knows_the_bill(user)
    user.types("removekey", "--confirm", "mykey")
    left = user.types("terminate", "--confirm", "gpucluster", status=1)
    assert re.search("'gpucluster'.*us-east-1", left.stderr)


def knows_the_bill(user: User) -> None:
    """Check the bill of the terminated cluster, with the removed nodes."""
    found = json.loads(user.types("cost", "--json", "gpucluster").stdout)
    nodes = {node["node"]: node for node in found["nodes"]}
    assert sorted(nodes) == ["master", "node001", "node002", "node003", "node004"]
    for node in nodes.values():
        assert node["state"] == "ended"
        assert node["dollars"] == pytest.approx(0.526 * node["hours"])
    # Each run costs at least a minute, so that the runs of a quick test cost the same.
    assert nodes["master"]["hours"] >= nodes["node004"]["hours"] >= nodes["node003"]["hours"] > 0
    assert found["notes"] == []


def keeps_secrets(user: User, watch: Watch) -> None:
    """Check that a start with --debug put no secret into output, logs or process lists."""
    home, hosts = user.cloud.home, user.hosts()
    keys = ["/etc/ssh/ssh_host_ed25519_key", "/root/.ssh/id_ed25519"]
    keys += ["/home/sgeadmin/.ssh/id_ed25519"]
    secrets = forms(AWS_SECRET) + forms(USER_DATA) + forms((home / "mykey.pem").read_text())
    for name in keys:
        secrets += forms(hosts["master"].run("cat", name).stdout)
    assert "PRIVATE KEY" not in user.said
    assert not [secret for secret in secrets if secret in user.said.encode()]
    assert len(watch.seen) > 100
    assert watch.shows(secrets) == []
    config = [home / ".starcluster" / name for name in ("config", "first_boot")]
    logs = [user.cloud.folder / name for name in ("calls.jsonl", "server.log")]
    found = files_with(secrets, [home, *logs])
    assert set(found) == {home / "mykey.pem", *config}
    for host in hosts.values():
        own = host.inside("/../upper")  # the node's files that are not in its image
        found = {f"/{path.relative_to(own)}" for path in files_with(secrets, [own])}
        assert keys[0] in found
        assert found <= {*keys, "/var/lib/cloud/script"}
        for name in found:
            assert host.run("stat", "-c", "%a", name).stdout in ("600\n", "700\n")
