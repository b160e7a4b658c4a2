"""A user who types starcluster commands against a cloud on the test bed."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tests.testbed.cloud import Cloud
from tests.testbed.fabric import Node

# A typical third-party plugin.
PLUGIN = """
from starcluster.clustersetup import ClusterSetup
from starcluster.logger import log

class Mark(ClusterSetup):
    def __init__(self, path):
        self.path = path

    def run(self, nodes, master, user, user_shell, volumes):
        for node in nodes:
            self._mark(node, 'run')

    def on_add_node(self, node, nodes, master, user, user_shell, volumes):
        log.info('marking %s' % node.alias)
        self._mark(node, 'on_add_node')

    def on_remove_node(self, node, nodes, master, user, user_shell, volumes):
        master.ssh.execute('echo removed %s >> %s' % (node.alias, self.path))

    def on_shutdown(self, nodes, master, user, user_shell, volumes):
        self._mark(master, 'on_shutdown')

    def on_restart(self, nodes, master, user, user_shell, volumes):
        self._mark(master, 'on_restart')

    def _mark(self, node, word):
        node.ssh.execute('echo %s %s >> %s' % (word, node.alias, self.path))
"""


class User:
    """A user who runs commands."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.said = ""

    def types(
        self, *words: str, status: int = 0, timeout_s: float = 600
    ) -> subprocess.CompletedProcess[str]:
        # The keys of the account are in the config, so they are in no environment.
        argv = ["env", "-u", "AWS_ACCESS_KEY_ID", "-u", "AWS_SECRET_ACCESS_KEY"]
        argv += [sys.executable, "-m", "starcluster"]
        done = self.cloud.run(*argv, *words, timeout_s=timeout_s)
        self.said += done.stdout + done.stderr
        assert done.returncode == status, f"{words}: {done.stdout}{done.stderr}"
        return done

    def clusters(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.types("listclusters", "--json").stdout)
        return found

    def states(self) -> dict[str, str]:
        (cluster,) = self.clusters()
        return {node["alias"]: node["state"] for node in cluster["nodes"]}

    def hosts(self) -> dict[str, Node]:
        """Return the running hosts by alias."""
        (cluster,) = self.clusters()
        up = self.cloud.nodes()
        return {node["alias"]: up[node["id"]] for node in cluster["nodes"] if node["id"] in up}

    def queues(self) -> dict[str, str]:
        """Return the state of each queue instance by host; empty if it accepts jobs."""
        text = self.types("sshmaster", "gpucluster", "qstat -f").stdout
        rows = [line.split() for line in text.splitlines() if line.startswith("all.q@")]
        return {row[0].partition("@")[2]: row[5] if len(row) > 5 else "" for row in rows}
