"""A cluster on fresh systems, as stock images are: the set-up installs what it needs by apt-get."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from sge_jobs import HWLOC_PACKAGES
from tests.on_hosts.user import PLUGIN, User
from tests.testbed.cloud import IMAGE, Cloud
from tests.testbed.roots import DEBIAN_12, DEBIAN_13, UBUNTU, debian_packages, root

pytestmark = [pytest.mark.debootstrap, pytest.mark.sge, pytest.mark.slow]

CONFIG = f"""
[aws info]
aws_access_key_id = AKIAEXAMPLEOFACONFIG
aws_secret_access_key = of-no-account

[cluster small]
keyname = mykey
cluster_size = 2
node_instance_type = g4dn.xlarge
node_image_id = {IMAGE}
gridengine_packages = ~/packages
plugins = mark, gpus

[plugin mark]
setup_class = mark.Mark
path = /etc/marked

[plugin gpus]
setup_class = starcluster_plugins.gpu_sge.GpuSge
selftest_s = 1
"""
NODES = ("master", "node001")
VERSIONS = "dpkg-query -W -f '${Package} ${Version}\\n' 'gridengine-*'"
BROKEN, WORKING = "8.1.9+dfsg-11ubuntu2", "8.1.9+dfsg-10"


@pytest.fixture
def user(request: pytest.FixtureRequest) -> Iterator[User]:
    with Cloud(root=root(request.param)) as cloud:
        folder = cloud.home / ".starcluster"
        (folder / "plugins").mkdir(parents=True)
        (folder / "plugins" / "mark.py").write_text(PLUGIN)
        (folder / "config").write_text(CONFIG)
        (folder / "config").chmod(0o600)
        (cloud.home / "packages").mkdir()
        made = User(cloud)
        made.types("createkey", "mykey", "-o", str(cloud.home / "mykey.pem"), "-a")
        yield made


@pytest.mark.parametrize(
    ("user", "system"),
    [(DEBIAN_12, "Debian GNU/Linux 12"), (DEBIAN_13, "Debian GNU/Linux 13")],
    indirect=["user"],
)
def test_a_fresh_debian_runs_a_job(user: User, system: str) -> None:
    user.types("start", "gpucluster", timeout_s=900)
    for host in user.hosts().values():
        assert system in host.run("cat", "/etc/os-release").stdout
        assert not host.run("apt-mark", "showhold").stdout  # the distribution's own packages work
    works_and_ends(user)


@pytest.mark.parametrize("user", [UBUNTU], indirect=True)
def test_ubuntu_gets_the_packages_of_debian_12_if_they_are_genuine(user: User) -> None:
    tampered = give_packages(user.cloud.home / "packages")
    refused = user.types("start", "gpucluster", status=1, timeout_s=900)
    assert tampered in refused.stderr
    assert "wrong SHA-256" in refused.stderr
    assert "gridengine_packages" in refused.stderr
    for host in user.hosts().values():
        assert "Ubuntu 22.04" in host.run("cat", "/etc/os-release").stdout
        assert set(installed(host.run("sh", "-c", VERSIONS).stdout)) == {BROKEN}
        assert not host.run("apt-mark", "showhold").stdout

    shutil.copy(debian_packages() / tampered, user.cloud.home / "packages")
    done = user.types("start", "-x", "gpucluster", timeout_s=900)
    assert "SIGSEGV" in done.stdout + done.stderr
    for alias, host in user.hosts().items():
        packages = installed(host.run("sh", "-c", VERSIONS).stdout)
        assert all(version.startswith(WORKING) for version in packages)
        held = host.run("apt-mark", "showhold").stdout.split()
        master = ["gridengine-master"] if alias == "master" else []
        assert held == ["gridengine-client", "gridengine-common", "gridengine-exec", *master]
        hwloc = host.run("dpkg-query", "-W", "-f", "${Version}", "libhwloc15").stdout
        assert hwloc == HWLOC_PACKAGES[0].version  # that of Ubuntu 22.04 is too old for them
        host.run("apt-get", "-q", "-y", "upgrade")
        assert installed(host.run("sh", "-c", VERSIONS).stdout) == packages
    works_and_ends(user)


def installed(text: str) -> list[str]:
    """Return the versions of the installed packages."""
    return [words[1] for line in text.splitlines() if len(words := line.split()) == 2]


def give_packages(folder: Path) -> str:
    """Give Debian 12's packages, one of them with another byte at the end; return its name."""
    for pattern in ("gridengine-*.deb", "libhwloc15_*.deb"):
        for path in debian_packages().glob(pattern):
            shutil.copy(path, folder)
    changed = next(folder.glob("gridengine-client_*"))
    data = bytearray(changed.read_bytes())
    data[-1] ^= 1
    changed.write_bytes(data)
    return changed.name


def works_and_ends(user: User) -> None:
    """Check the plugin, run a job with a GPU on each node, and terminate."""
    hosts = user.hosts()
    assert user.queues() == dict.fromkeys(NODES, "")
    for alias, host in hosts.items():
        assert host.run("cat", "/etc/marked").stdout == f"run {alias}\n"
    command = "qsub -sync y -cwd -j y -o 'out.$TASK_ID' -l gpu=1 -t 1-2 -b y -N w printenv"
    user.types("sshmaster", "-u", "sgeadmin", "gpucluster", command)
    text = user.types("sshnode", "-u", "sgeadmin", "gpucluster", "node001", "cat out.*").stdout
    lines = text.splitlines()
    assert sum(line.startswith("CUDA_VISIBLE_DEVICES=GPU-") for line in lines) == len(NODES)
    assert {line for line in lines if line.startswith("HOSTNAME=")} == {
        f"HOSTNAME={alias}" for alias in NODES
    }
    user.types("terminate", "--confirm", "gpucluster")
    assert user.clusters() == []
    assert not user.cloud.nodes()
