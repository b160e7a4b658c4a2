"""The plugin ipcluster on real hosts, with the real ipyparallel."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from starcluster.node import Node
from starcluster.plugins.ipcluster import IPCluster, IPClusterRestartEngines, IPClusterStop
from starcluster.setup import set_up
from tests.on_hosts.test_starcluster_setup_on_hosts import TEMPLATE
from tests.testbed.ssh_hosts import SshHosts

pytestmark = pytest.mark.sge


@pytest.fixture
def hosts() -> Iterator[SshHosts]:
    with SshHosts("master", "node001", gpus=0) as made:
        yield made


PROGRAM = """
import ipyparallel
client = ipyparallel.Client()
print(sorted(set(client[:].apply_sync(__import__('socket').gethostname))), len(client.ids))
"""


def ask(master: Node) -> str:
    argv = ["/home/sgeadmin/ipyparallel-env/bin/python", "-c", PROGRAM]
    command = ["su", "-", "sgeadmin", "-c", shlex.join(argv)]
    return master.ssh.checked(command, timeout_s=300).strip()


def wheels(hosts: SshHosts, folder: Path) -> None:
    """Give pip of the hosts, which have no network, the packages that it asks for."""
    argv = [sys.executable, "-m", "pip", "download", "-q", "-d", str(folder)]
    done = subprocess.run(
        [*argv, "ipyparallel", "ipython"], capture_output=True, text=True, check=False, timeout=300
    )
    if done.returncode:
        pytest.skip(f"no ipyparallel from pip: {done.stderr[-300:]}")
    shutil.copytree(folder, hosts.machines["master"].inside("/srv/wheels"))
    text = "[global]\nno-index = true\nfind-links = /srv/wheels\n"
    hosts.machines["master"].inside("/etc/pip.conf").write_text(text)


def test_engines_of_all_nodes_answer(hosts: SshHosts, tmp_path: Path) -> None:
    nodes = hosts.nodes(["master", "node001"])
    master = nodes[0]
    for node in nodes:
        node._facts["nproc"] = 2

    wheels(hosts, tmp_path / "wheels")

    def use() -> None:
        set_up(nodes, TEMPLATE)
        plugin = IPCluster()
        given = (nodes, master, "sgeadmin", "bash", {})
        for _ in range(2):
            plugin.run(*given)
            assert ask(master) == "['master', 'node001'] 4"
        IPClusterRestartEngines().run(*given)
        assert ask(master) == "['master', 'node001'] 4"
        IPClusterStop().run(*given)
        for node in nodes:
            line = "ps -e -o stat=,args= | grep 'bin/ip[ce]' | grep -v ^Z"
            assert node.ssh.execute(line, ignore_exit_status=True) == []

    hosts.within(use)
