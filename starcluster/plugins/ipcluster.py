"""``setup_class = starcluster.plugins.ipcluster.IPCluster``: ipyparallel on all nodes."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from starcluster.clustersetup import ClusterSetup, DefaultClusterSetup, for_each
from starcluster.errors import ConfigError, NodeError
from starcluster.logger import log
from starcluster.node.node import Node
from starcluster.utils import generate_passwd

_INSTALL_S = 1800.0
_START_S = 120.0
_PACKERS = ("json", "pickle", "msgpack")
_TRUE = ("true", "yes", "1", "on")

# Each daemon has a file with its pid in a directory of the node, not of the shared home.
_COMMON = r"""
set -eu
env=$1
run=/tmp/ipcluster-$(id -u)
security=$HOME/.ipython/profile_default/security
mkdir -p -m 700 "$run"
[ -O "$run" ] && [ ! -L "$run" ] || { echo "$run belongs to another user" >&2; exit 1; }
alive() { # NAME PROGRAM
    [ -s "$run/$1.pid" ] && tr '\0' ' ' <"/proc/$(cat "$run/$1.pid")/cmdline" 2>/dev/null \
        | grep -q "/bin/$2 "
}
launch() { # NAME PROGRAM ARGUMENTS...
    name=$1 program=$2
    shift 2
    ! alive "$name" "$program" || return 0
    setsid nohup "$env/bin/$program" "$@" >>"$run/$name.log" 2>&1 </dev/null &
    echo $! >"$run/$name.pid"
}
end() { # PATTERN: each daemon leads a process group, with its children
    groups=
    for file in "$run"/$1.pid; do
        [ -s "$file" ] || continue
        alive "$(basename "$file" .pid)" '[a-z-]*' && groups="$groups -$(cat "$file")"
        rm -f "$file"
    done
    for group in $groups; do
        kill -s TERM -- "$group" 2>/dev/null || :
    done
    for group in $groups; do
        tries=100
        while kill -s 0 -- "$group" 2>/dev/null && [ $tries -gt 0 ]; do
            tries=$((tries - 1))
            sleep 0.1
        done
        kill -s KILL -- "$group" 2>/dev/null || :
    done
}
until_ready() { # NAME FILE
    tries=600
    until [ -s "$2" ]; do
        tries=$((tries - 1))
        # alive is wrong here: a process that was just launched has not executed its program yet.
        if [ $tries -eq 0 ] || ! kill -s 0 "$(cat "$run/$1.pid")" 2>/dev/null; then
            echo "$1 did not start; the end of $run/$1.log:" >&2
            tail -n 5 "$run/$1.log" >&2
            exit 1
        fi
        sleep 0.1
    done
}
"""
_CONTROLLER = """
if ! alive controller ipcontroller; then
    rm -f "$security"/ipcontroller-*.json
    launch controller ipcontroller --ip="$2" --location="$2" --log-level="$3" \
        --Session.packer="$4"
    until_ready controller "$security/ipcontroller-engine.json"
fi
"""
_ENGINES = """
number=0
while [ $number -lt "$2" ]; do
    number=$((number + 1))
    launch "engine$number" ipengine --file="$security/ipcontroller-engine.json" --log-level="$3"
done
"""
_NOTEBOOK = """
umask 077
cat >"$run/token"
export JUPYTER_TOKEN_FILE="$run/token"
mkdir -p "$2"
launch notebook jupyter-lab --no-browser --ip=127.0.0.1 --port=8888 --ServerApp.root_dir="$2"
"""
_COUNT = """
import sys
import ipyparallel
client = ipyparallel.Client()
client.wait_for_engines(int(sys.argv[1]), timeout=60, interactive=False)
"""


class IPCluster(DefaultClusterSetup):
    """Start an ipyparallel controller on the master, and an engine for each processor.

    Args:
        enable_notebook: Whether to start JupyterLab on the master, on its port 8888.
        notebook_passwd: Password of JupyterLab. Default: a random one, in the log.
        notebook_directory: Directory of the notebooks. Default: the home of the user.
        packer: Format of messages: json, pickle or msgpack. Default: json.
        log_level: Level of the log files: DEBUG, INFO, WARN or ERROR. Default: INFO.
        packages: More packages to install for the engines, separated by commas or spaces.
        python: Interpreter of the nodes. Default: python3.
    """

    def __init__(
        self,
        enable_notebook: str = "false",
        notebook_passwd: str = "",
        notebook_directory: str = "",
        packer: str = "json",
        log_level: str = "INFO",
        packages: str = "",
        python: str = "python3",
    ) -> None:
        super().__init__()
        if packer not in _PACKERS:
            raise ConfigError(
                f"ipcluster: invalid packer '{packer}'", f"Choose one of: {', '.join(_PACKERS)}"
            )
        self._notebook = enable_notebook.lower() in _TRUE
        self._password, self._directory = notebook_passwd, notebook_directory
        self._packer, self._level, self._python = packer, log_level.upper(), python
        self._packages = packages.replace(",", " ").split()

    def run(self, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any) -> None:
        """Install ipyparallel in the shared home; start what does not run yet."""
        env = self._install(master, user)
        values = [master.private_ip_address, self._level, self._packer]
        _as(master, user, _CONTROLLER, env, *values)
        for_each(nodes, lambda node: self._start_engines(node, user, env))
        count = sum(node.num_processors for node in nodes)
        argv = [f"{env}/bin/python", "-c", _COUNT, str(count)]
        master.ssh.checked(["su", "-", user, "-c", shlex.join(argv)], timeout_s=_START_S)
        log.info("%d engines of ipyparallel run. On the master: %s/bin/ipython", count, env)
        if self._notebook:
            self._start_notebook(master, user, env)

    def on_add_node(
        self, node: Any, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any
    ) -> None:
        """Start the engines of the new node."""
        self._start_engines(node, user, _environment(master, user))

    def on_remove_node(
        self, node: Any, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any
    ) -> None:
        """Do nothing: the controller notices that engines are gone."""

    def _install(self, master: Node, user: str) -> str:
        env = _environment(master, user)
        if master.ssh.run([self._python, "-m", "ensurepip", "--version"]).status:
            master.package_install("python3-venv")
        wanted = ["ipyparallel", "ipython", *self._packages]
        wanted += ["jupyterlab"] * self._notebook + ["msgpack"] * (self._packer == "msgpack")
        for argv in (
            [self._python, "-m", "venv", env],
            [f"{env}/bin/pip", "install", "--quiet", "--disable-pip-version-check", *wanted],
        ):
            command = ["su", "-", user, "-c", shlex.join(argv)]
            master.ssh.checked(command, timeout_s=_INSTALL_S)
        return env

    def _start_engines(self, node: Node, user: str, env: str) -> None:
        _as(node, user, _ENGINES, env, str(node.num_processors), self._level)

    def _start_notebook(self, master: Node, user: str, env: str) -> None:
        password = self._password or generate_passwd(16)
        folder = self._directory or master.getpwnam(user).pw_dir
        # The script ends before the password, which the last command reads.
        _as(master, user, _NOTEBOOK, env, folder, secret=password)
        log.info("JupyterLab runs on the master. On your machine: ssh -L 8888:localhost:8888 ...")
        if not self._password:
            log.info("Its password: %s", password)


class IPClusterStop(ClusterSetup):
    """Stop the controller, the engines and JupyterLab."""

    def __init__(self) -> None:
        super().__init__()

    def run(self, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any) -> None:
        """End the processes on all nodes."""
        env = _environment(master, user)
        for_each(nodes, lambda node: _as(node, user, "end '*'", env))


class IPClusterRestartEngines(IPCluster):
    """Restart all engines, for example to free their memory; the controller keeps running."""

    def run(self, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any) -> None:
        """End the engines on all nodes, and start new ones."""
        env = _environment(master, user)
        if master.ssh.run(["test", "-x", f"{env}/bin/ipengine"]).status:
            raise NodeError(
                "ipyparallel is not installed",
                "Run the plugin IPCluster first.",
                alias=master.alias,
            )
        for_each(nodes, lambda node: _as(node, user, "end 'engine*'", env))
        super().run(nodes, master, user, user_shell, volumes)


def _environment(master: Node, user: str) -> str:
    return f"{master.getpwnam(user).pw_dir}/ipyparallel-env"


def _as(node: Node, user: str, script: str, *arguments: str, secret: str = "") -> None:
    """Run a script on a node as a user; the script can read ``secret`` from standard input."""
    inner: Sequence[str] = ["sh", "-c", _COMMON + script, "ipcluster", *arguments]
    argv = ["su", "-", user, "-s", "/bin/sh", "-c", shlex.join(inner)]
    node.ssh.checked(argv, stdin=secret, timeout_s=_START_S)
