"""Grid Engine packages that crash, on a host as Ubuntu is: what sge-jobs prints works there."""

from __future__ import annotations

import http.server
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from sge_jobs import DEBIAN_MIRRORS, DEBIAN_PACKAGES, HWLOC_PACKAGES
from starcluster.errors import RemoteCommandFailed
from starcluster.setup import install
from starcluster.setup.scripts import script
from tests.testbed.fabric import Node
from tests.testbed.roots import UBUNTU, debian_packages, root
from tests.testbed.ssh_hosts import SshHosts
from tests.waiting import until

pytestmark = [pytest.mark.debootstrap, pytest.mark.sge, pytest.mark.slow]
ENVIRONMENT = {"SGE_ROOT": "/var/lib/gridengine"}
PINNED = [package for package in DEBIAN_PACKAGES if package.architecture in ("all", "amd64")]
BROKEN = "8.1.9+dfsg-11ubuntu2"
# As a user of Ubuntu does it; the daemons and the cell come from the packages.
BY_HAND = """
export DEBIAN_FRONTEND=noninteractive
apt-get -q update
apt-get -q -y install --no-install-recommends netbase nullmailer gridengine-client
apt-get -q -y install --no-install-recommends gridengine-exec gridengine-master
"""


@pytest.fixture
def hosts(request: pytest.FixtureRequest) -> Iterator[SshHosts]:
    with SshHosts("master", root=root(UBUNTU)) as made:
        made.machines["master"].run("sh", "-c", BY_HAND)
        made.within(install, made.nodes()[0])
        yield made


def versions(node: Node) -> list[str]:
    return node.run("dpkg-query", "-W", "-f", "${Version} ", "gridengine-*").stdout.split()


def test_a_changed_package_is_refused_on_the_node_too(hosts: SshHosts) -> None:
    machine, (node,) = hosts.machines["master"], hosts.nodes()
    before = versions(machine)
    assert set(before) == {BROKEN}
    folder = machine.inside("/var/tmp/given")
    shutil.copytree(debian_packages(), folder)
    with (folder / PINNED[-1].file).open("r+b") as file:
        file.write(b"?")
    values = {
        "FOLDER": "/var/tmp/given",
        "DIGESTS": "\n".join(f"{package.sha256}  {package.file}" for package in PINNED),
        "NAMES": " ".join(package.name for package in PINNED),
        "TOOLS": "/opt/starmint",
    }
    with pytest.raises(RemoteCommandFailed) as caught:
        hosts.within(
            node.ssh.checked, ["sh", "-s"], stdin=script("apt+gridengine", values), timeout_s=60
        )
    assert PINNED[-1].file in caught.value.what
    assert versions(machine) == before
    assert not machine.run("apt-mark", "showhold").stdout
    assert not folder.exists()


def test_what_setup_prints_makes_a_cell_that_answers(hosts: SshHosts) -> None:
    machine = hosts.machines["master"]
    for command in ("setup", "check"):
        done = machine.run("sge-jobs", command, env=ENVIRONMENT)
        assert done.returncode == 1
        assert "SIGSEGV" in done.stdout + done.stderr
    errors = machine.run("sge-jobs", "setup", env=ENVIRONMENT).stderr
    first = errors.index("load() {")
    commands = "\n".join(
        line for line in errors[first:].splitlines() if not line.startswith("Then create the cell")
    )
    with serving(hosts, debian_packages()) as url:
        text = commands.replace(DEBIAN_MIRRORS[0], url)
        assert text != commands
        for package in (PINNED[0], HWLOC_PACKAGES[0]):
            assert f"{package.folder}/" in text
            text = text.replace(f"{package.folder}/", "")
        ran = machine.run("sh", "-e", "-c", text)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert all(version.startswith("8.1.9+dfsg-10") for version in versions(machine))
    assert len(machine.run("apt-mark", "showhold").stdout.split()) == len(PINNED)
    hwloc = machine.run("dpkg-query", "-W", "-f", "${Version}", "libhwloc15").stdout
    assert hwloc == HWLOC_PACKAGES[0].version
    until(lambda: machine.run("qconf", "-sm", env=ENVIRONMENT).returncode == 0, 30, 0.2)
    assert "sgeadmin" in machine.run("qconf", "-sm", env=ENVIRONMENT).stdout


class serving:  # noqa: N801 - a context manager
    """Serve a directory on the hosts' network."""

    def __init__(self, hosts: SshHosts, folder: Path) -> None:
        handler = partial(http.server.SimpleHTTPRequestHandler, directory=folder)
        address = ("10.77.0.1", 8000)
        self.server = hosts.within(http.server.ThreadingHTTPServer, address, handler)

    def __enter__(self) -> str:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return f"http://10.77.0.1:{self.server.server_port}"

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
