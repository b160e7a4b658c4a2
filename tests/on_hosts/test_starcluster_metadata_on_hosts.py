"""Only root of a node reaches the metadata service, and the host key in it is worthless."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import pytest

from starcluster.model import TAG_HOST_KEY
from tests.on_hosts.live_cluster import NAME, Bench
from tests.testbed.cloud import Cloud
from tests.testbed.fabric import Node
from tests.testbed.metadata import ADDRESSES, ROLE_SECRET

pytestmark = pytest.mark.sge

_CURL = "curl -sS --globoff --max-time 60"
_HEADER = "X-aws-ec2-metadata-token"
USER = 1  # daemon


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    before = dict(os.environ)
    with Cloud() as cloud:
        made = cloud.call(Bench, cloud)
        cloud.call(lambda: made.start(made.lifecycle(), cluster_size="2"))
        yield made
    os.environ.clear()
    os.environ.update(before)


def node_of(bench: Bench, alias: str) -> Node:
    return bench.cloud.call(bench.node, alias)


def host_key_tags(bench: Bench) -> dict[str, str]:
    found = bench.cloud.call(lambda: bench.ec2.instances(cluster=NAME))
    return {each.alias: each.tags[TAG_HOST_KEY] for each in found}


def ask(address: str, path: str) -> str:
    """Return a shell script that asks the metadata service as its clients do."""
    url = f"http://{f'[{address}]' if ':' in address else address}/latest"
    token = f"$({_CURL} -X PUT -H '{_HEADER}-ttl-seconds: 60' {url}/api/token)"
    return f'token={token} && {_CURL} -H "{_HEADER}: $token" {url}/{path}'


def role(address: str) -> str:
    return ask(address, "meta-data/iam/security-credentials/role")


def only_root_is_answered(host: Node) -> None:
    for address in ADDRESSES:
        assert host.run("sh", "-c", role(address)).stdout == ROLE_SECRET
        for words in (["sh", "-c"], ["unshare", "--user", "--map-root-user", "sh", "-c"]):
            refused = host.run(*words, role(address), uid=USER)
            assert refused.returncode == 7, refused.stderr  # curl could not connect
            assert not refused.stdout


def test_only_root_is_answered_on_every_node_and_after_every_boot(bench: Bench) -> None:
    for alias in ("master", "node001"):
        only_root_is_answered(node_of(bench, alias))
    before = node_of(bench, "node001").pid
    bench.types("restart", "--reboot-only", NAME)
    assert node_of(bench, "node001").pid != before
    for alias in ("master", "node001"):
        only_root_is_answered(node_of(bench, alias))
    bench.types("restart", NAME)  # the setup finds the rules
    only_root_is_answered(node_of(bench, "node001"))


def test_a_job_and_a_tunnel_of_its_user_are_refused(bench: Bench) -> None:
    script = f"{role(ADDRESSES[0])} || echo refused"
    command = "qsub -sync y -cwd -j y -o job.out -l hostname=node001 -N asks; cat job.out"
    bench.types("sshmaster", "-u", "sgeadmin", NAME, f"cat > asks.sh <<'END'\n{script}\nEND")
    said = bench.types("sshmaster", "-u", "sgeadmin", NAME, command.replace(";", " asks.sh;"))
    assert "refused" in said
    assert ROLE_SECRET not in said
    tunnel = f"printf 'GET / HTTP/1.0\\r\\n\\r\\n' | ssh -W {ADDRESSES[0]}:80 node001; true"
    assert "HTTP" not in bench.types("sshmaster", "-u", "sgeadmin", NAME, tunnel)
    assert "HTTP" in bench.types("sshmaster", NAME, tunnel)  # root


def test_the_host_key_of_the_user_data_is_on_no_node(bench: Bench) -> None:
    tags = host_key_tags(bench)
    assert len(set(tags.values())) == len(tags) == 2
    for alias, key in tags.items():
        host = node_of(bench, alias)
        data = host.run("sh", "-c", ask(ADDRESSES[0], "user-data")).stdout
        assert re.search("ssh-ed25519 [^ \\\\]+", data)
        assert key.split()[1] not in data
        shown = host.run("ssh-keyscan", "-t", "ed25519", "localhost").stdout
        assert key in shown
        own = host.run("cat", "/etc/ssh/ssh_host_ed25519_key").stdout
        assert own.splitlines()[2] not in data
        assert not host.inside("/etc/ssh/ssh_host_ed25519_key.new").exists()
        known = host.run("cat", "/etc/ssh/ssh_known_hosts").stdout
        assert all(other in known for other in tags.values())


def test_a_replacement_that_was_interrupted_continues(bench: Bench) -> None:
    """The node has the new key, but the tag still has both."""
    new = host_key_tags(bench)["node001"]
    (id,) = (
        id for id, host in bench.cloud.nodes().items() if host.ip == node_of(bench, "node001").ip
    )
    bench.cloud.call(bench.ec2.tag, [id], {TAG_HOST_KEY: f"{new},ssh-ed25519 AAAAold"})
    assert "up" in bench.types("listclusters", "-s", NAME)
    assert bench.types("sshnode", NAME, "node001", "hostname") == "node001\n"
    bench.types("start", "-x", NAME)
    assert host_key_tags(bench)["node001"] == new


def test_a_node_whose_users_still_reach_it_does_not_join(bench: Bench) -> None:
    host = node_of(bench, "node001")
    host.run("sh", "-c", "ip rule add pref 5 to 169.254.169.254 lookup main")
    said = bench.types("start", "-x", NAME, status=1)
    assert "metadata_access" in said
    host.run("ip", "rule", "del", "pref", "5")
    bench.types("start", "-x", NAME)


def test_everybody_is_answered_if_the_template_says_so(bench: Bench) -> None:
    path = bench.cloud.home / "config"
    text = path.read_text()
    path.write_text(text.replace("[cluster tested]", "metadata_access = all\n[cluster tested]"))
    bench.types("start", "-x", NAME)
    host = node_of(bench, "node001")
    for address in ADDRESSES:
        assert host.run("sh", "-c", role(address), uid=USER).stdout == ROLE_SECRET
    assert not host.inside("/usr/local/sbin/starcluster-metadata").exists()
    path.write_text(text)
    bench.types("start", "-x", NAME)
    only_root_is_answered(host)
