"""Run a broker on the master and ``spearmint worker`` on all nodes.

``setup_class = starcluster_plugins.celery_workers.CeleryWorkers``, after ``project_env``. Then
``spearmint --driver=CELERY config.pb`` works on the master.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import shlex
import time
from collections.abc import Mapping, Sequence
from typing import Any

from starcluster.clustersetup import ClusterSetup, for_each
from starcluster.errors import ConfigError, NodeError, SetupError
from starcluster.logger import log
from starcluster.node import Node
from starcluster_plugins import nvidia_driver
from starcluster_plugins.celery_units import (
    MARK,
    PORT,
    broker_file,
    broker_unit,
    redis_conf,
    secrets_of,
    worker_unit,
)
from starcluster_plugins.remote import is_true

BROKER, WORKER = "starcluster-broker.service", "starcluster-worker.service"
FOLDER = "/etc/starcluster"
SECRETS, CONF = f"{FOLDER}/broker.toml", f"{FOLDER}/broker.conf"
"""Files of root on the master: what users of the broker need, and Redis's configuration."""
REQUIREMENT = "celery[redis]>=5.4"
_UNITS = "/etc/systemd/system"
_USER_FILE = ".config/spearmint/broker.toml"
_STEP_S, _INSTALL_S, _READY_S, _PAUSE_S = 120.0, 1800.0, 120.0, 1.0
_FOREIGN = 3  # exit status of _HAND_OVER

# Runs as the user, who can replace these directories by links.
_HAND_OVER = """
set -eu
umask 077
cd
if [ -e "$1" ] && ! grep -qxF "$2" "$1"; then exit 3; fi
mkdir -p "${1%/*}"
cat >"$1.new"
mv "$1.new" "$1"
"""


class CeleryWorkers(ClusterSetup):
    """Run Redis on the master, and a worker on each node: one trial at a time for each GPU.

    Args:
        slots: Trials at a time on a node without a GPU. Default: one for each processor.
        drain_s: Seconds that a node which is removed or restarted waits for its trials.
        master_is_exec_host: Whether the master also runs trials. Default: true.
    """

    def __init__(
        self, slots: str = "", drain_s: str = "60", master_is_exec_host: str = "true"
    ) -> None:
        super().__init__()
        for name, value in (("slots", slots or "1"), ("drain_s", drain_s)):
            if not (value.isascii() and value.isdecimal() and int(value)):
                raise ConfigError(
                    f"celery_workers: invalid {name} '{value}': expected a positive number",
                    f"Set a number, e.g. {name} = 4",
                )
        self._slots = int(slots or "0")
        self._drain_s = int(drain_s)
        self._on_master = is_true(master_is_exec_host)

    def run(self, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any) -> None:
        """Start the broker and all workers; wait until each worker answers."""
        program = _spearmint(master, user)
        _start_broker(master, user)
        workers = [node for node in nodes if node is not master or self._on_master]
        self._start(workers, master, user, program, volumes)
        if not self._on_master:
            _run(master, ["systemctl", "disable", "--quiet", "--now", WORKER], self._drain_s)
        log.info(
            "Workers run on %d nodes. On the master: spearmint --driver=CELERY config.pb",
            len(workers),
        )

    def on_add_node(
        self, node: Any, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any
    ) -> None:
        """Start the worker of the new node."""
        self._start([node], master, user, _spearmint(master, user), volumes)

    def on_remove_node(
        self, node: Any, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any
    ) -> None:
        """Let trials end for ``drain_s`` seconds; searches retry those that do not."""
        log.info("%s: waiting up to %d s for trials", node.alias, self._drain_s)
        _checked(node, ["systemctl", "disable", "--quiet", "--now", WORKER], self._drain_s)

    def on_restart(self, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any) -> None:
        """Let trials end, as for a node that is removed. They restart at the boot."""
        for_each(nodes, lambda node: _run(node, ["systemctl", "stop", WORKER], self._drain_s))

    def _start(
        self,
        nodes: Sequence[Node],
        master: Node,
        user: str,
        program: str,
        volumes: Mapping[str, Mapping[str, Any]],
    ) -> None:
        home, broker = master.getpwnam(user).pw_dir, _text(master, SECRETS)
        roots = [home, *_roots(volumes)]

        def start(node: Node) -> None:
            argv = [program, "worker", "--broker", posixpath.join(home, _USER_FILE)]
            argv += [word for root in roots for word in ("--root", root)]
            argv += self._gpu_options(node)
            text = worker_unit(argv, user=user, home=home, drain_s=self._drain_s)
            _start_unit(node, WORKER, text, reads=broker, wait_s=self._drain_s)

        for_each(nodes, start)
        _await(nodes, master, user, program)

    def _gpu_options(self, node: Node) -> list[str]:
        if not nvidia_driver.gpus(node):
            if nvidia_driver.has_device(node):
                raise NodeError(
                    "the node has an NVIDIA card, and no working driver",
                    "Run nvidia_tune before this plugin.",
                    alias=node.alias,
                )
            return ["--gpus", "none", "--slots", str(self._slots or node.num_processors)]
        if not node.ssh.run(["pgrep", "-x", "sge_execd"]).status:
            raise NodeError(
                "Grid Engine and the worker would assign the same GPUs",
                "Set disable_queue = true in the template.",
                alias=node.alias,
            )
        return ["--gpus", "all"]


def _roots(volumes: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return where volumes with files that can be locked are mounted."""
    return [
        str(volume["mount_path"])
        for volume in volumes.values()
        if volume.get("mount_path") and "bucket" not in volume
    ]


def _spearmint(master: Node, user: str) -> str:
    """Return the path of the user's ``spearmint``; install Celery next to it if it is missing."""
    found: list[str] = _as(master, user, ["sh", "-c", "command -v spearmint"]).stdout.split()
    if not found:
        raise NodeError(
            f"user {user} has no command spearmint",
            "Run project_env before this plugin: plugins = project_env, celery_workers",
            alias=master.alias,
        )
    python = posixpath.join(posixpath.dirname(found[-1]), "python")
    if _as(master, user, [python, "-c", "import celery, redis"]).status:
        log.info("Installing %s next to %s", REQUIREMENT, found[-1])
        argv = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        answer = _as(master, user, [*argv, REQUIREMENT], timeout_s=_INSTALL_S)
        if answer.status:
            reason = "; ".join((answer.stderr or answer.stdout).strip().splitlines()[-2:])
            raise NodeError(
                f"cannot install {REQUIREMENT}: {reason}",
                "Name the extra in section [plugin project_env]: extras = celery",
                alias=master.alias,
            )
    return found[-1]


def _start_broker(master: Node, user: str) -> None:
    """Start Redis on the private address, and give the user its URL with the password."""
    if not master.ssh.which("redis-server"):
        # The package starts a Redis without a password, which all users of the master could use.
        master.ssh.checked(["systemctl", "mask", "--quiet", "redis-server.service"])
        master.package_install("redis-server")
    address = master.private_ip_address
    master.ssh.makedirs(FOLDER)
    secrets = secrets_of(_text(master, SECRETS))
    given = broker_file(secrets, address)
    master.ssh.write_file(SECRETS, given, 0o600)
    conf = redis_conf(secrets, address)
    master.ssh.write_file(CONF, conf, 0o600)
    unit = broker_unit(master.ssh.which("redis-server")[-1], CONF)
    _start_unit(master, BROKER, unit, reads=conf)
    argv = ["sh", "-c", _HAND_OVER, "sh", _USER_FILE, MARK]
    answer = _as(master, user, argv, stdin=given)
    if answer.status == _FOREIGN:
        raise NodeError(
            f"~/{_USER_FILE} of {user} names another broker",
            f"Rename it, then run the command again: mv ~/{_USER_FILE} ~/{_USER_FILE}.old",
            alias=master.alias,
        )
    if answer.status:
        raise NodeError(f"cannot write ~/{_USER_FILE}: {answer.stderr.strip()}", alias=master.alias)


def _start_unit(node: Node, name: str, text: str, *, reads: str, wait_s: float = 0.0) -> None:
    """Start a unit at every boot and now; restart one that runs with other texts.

    The file FOLDER/NAME.digest tells with which it was started last.
    """
    if not node.ssh.which("systemctl"):
        raise NodeError("the node has no systemd", "Use another image.", alias=node.alias)
    stamp = f"{FOLDER}/{name}.digest"
    digest = hashlib.sha256(f"{text}{reads}".encode()).hexdigest()
    is_new = _text(node, stamp) != digest
    node.ssh.write_file(f"{_UNITS}/{name}", text)
    _checked(node, ["systemctl", "daemon-reload"])
    _checked(node, ["systemctl", "enable", "--quiet", name])
    _checked(node, ["systemctl", "restart" if is_new else "start", name], wait_s)
    node.ssh.makedirs(FOLDER)
    node.ssh.write_file(stamp, digest, 0o600)


def _await(nodes: Sequence[Node], master: Node, user: str, program: str) -> None:
    """Wait until the worker of each node answers through the broker.

    Raises:
        SetupError: Some did not; it has the last lines of their logs.
    """
    deadline = time.monotonic() + _READY_S
    while missing := _without_answer(nodes, master, user, program):
        if time.monotonic() > deadline:
            failed = {node.alias: f"the worker does not answer: {_log(node)}" for node in missing}
            raise SetupError(
                f"{len(missing)} of {len(nodes)} workers do not answer on port {PORT} of "
                f"{master.alias}",
                f"Look at a node: journalctl -u {WORKER}",
                failed=failed,
            )
        time.sleep(_PAUSE_S)


def _without_answer(nodes: Sequence[Node], master: Node, user: str, program: str) -> list[Node]:
    answer = _as(master, user, [program, "workers", "--json"])
    try:
        rows = json.loads(answer.stdout[answer.stdout.index("[") :]) if not answer.status else []
    except ValueError:
        rows = []
    hosts = {row["host"] for row in rows}
    return [node for node in nodes if node.alias not in hosts]


def _log(node: Node) -> str:
    answer = _run(node, ["journalctl", "-q", "-u", WORKER, "-n", "3", "-o", "cat"])
    return "; ".join(answer.stdout.strip().splitlines()) or "its log is empty"


def _text(node: Node, path: str) -> str:
    return node.ssh.read_file(path) if node.ssh.isfile(path) else ""


def _as(
    node: Node, user: str, argv: Sequence[str], *, stdin: str = "", timeout_s: float = _STEP_S
) -> Any:
    command = ["su", "-", user, "-s", "/bin/sh", "-c", shlex.join(argv)]
    return node.ssh.run(command, stdin=stdin, timeout_s=timeout_s)


def _run(node: Node, argv: Sequence[str], more_s: float = 0.0) -> Any:
    return node.ssh.run(argv, timeout_s=_STEP_S + more_s)


def _checked(node: Node, argv: Sequence[str], more_s: float = 0.0) -> None:
    node.ssh.checked(argv, timeout_s=_STEP_S + more_s)
