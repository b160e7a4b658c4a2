"""celery_workers: broker, secrets, workers, and what it refuses."""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path

import pytest

from starcluster.errors import ConfigError, NodeError, RemoteCommandFailed, SetupError
from starcluster.testing import FakeNode, FakeShell
from starcluster_plugins import celery_workers
from starcluster_plugins.celery_units import broker_file, redis_conf, secrets_of, worker_unit
from starcluster_plugins.celery_workers import BROKER, CONF, SECRETS, WORKER, CeleryWorkers

ROOT = Path(__file__).parents[2]
SPEARMINT = "/home/ann/starmint-env/bin/spearmint"


class Cluster:
    """A fake master and nodes, whose workers answer while their unit runs."""

    def __init__(self, *aliases: str, gpus: int = 0) -> None:
        self.celery, self.foreign, self.gridengine, self.mute = True, False, False, False
        self.restarts: list[str] = []
        self.fails = ""
        self.given = ""
        self.nodes = [self._node(alias, gpus) for alias in ("master", *aliases)]
        self.master = self.nodes[0]

    def _node(self, alias: str, gpus: int) -> FakeNode:
        rows = "".join(f"{n}, GPU-{n}, T4, 580.1, Enabled, 5001, 1590\n" for n in range(gpus))
        node = FakeNode(alias, FakeShell(programs={"su": self._su, "systemctl": self._systemctl}))
        node.ssh.answer("nvidia-smi", rows if rows else (9, "no driver"))
        node.ssh.answer("redis-server")
        node.ssh.answer("apt-get")
        node.ssh.answer("journalctl", "cannot connect\n")
        node.ssh.programs["sh"] = lambda shell, words, _: "4\n" if words[-1] == "nproc" else (1, "")
        node.ssh.programs["pgrep"] = lambda *_: "7\n" if self.gridengine else (1, "")
        node.add_user("ann", uid=1001)
        for folder in ("/etc/systemd", "/etc/systemd/system"):
            node.ssh.makedirs(folder)
        return node

    def _su(self, shell: FakeShell, words: list[str], stdin: str) -> tuple[int, str] | str:
        command = words[-1]
        if "command -v" in command:
            return f"{SPEARMINT}\n"
        if "import celery" in command:
            return "" if self.celery else (1, "")
        if "pip install" in command:
            self.celery = True
            return ""
        if "workers --json" in command:
            up = [node for node in self.nodes if node.ssh.path_exists(f"/run-{WORKER}")]
            return "" if self.mute else json.dumps([{"host": node.alias} for node in up])
        if self.foreign:
            return 3, ""
        self.given = stdin
        return ""

    def _systemctl(self, shell: FakeShell, words: list[str], stdin: str) -> tuple[int, str] | str:
        if words[1] == self.fails:
            return 1, "failed"
        if words[1] in ("start", "restart"):
            shell.write_file(f"/run-{words[-1]}", "")
        if words[1] == "restart":
            self.restarts.append(f"{shell.name} {words[-1]}")
        return ""

    def run(self, plugin: CeleryWorkers | None = None, **volumes: dict[str, str]) -> None:
        (plugin or CeleryWorkers()).run(self.nodes, self.master, "ann", "bash", volumes)

    def unit(self, alias: str) -> str:
        (node,) = (each for each in self.nodes if each.alias == alias)
        return node.ssh.read_file(f"/etc/systemd/system/{WORKER}")


def test_workers_run_a_trial_for_each_gpu_or_processor() -> None:
    cluster = Cluster("node001")
    cluster.run(data={"volume_id": "vol-1", "mount_path": "/data"}, s3={"bucket": "b"})
    assert "--gpus none --slots 4'" in cluster.unit("node001")
    assert "--root /home/ann --root /data " in cluster.unit("master")
    cluster.run(CeleryWorkers(slots="3"))
    assert "--gpus none --slots 3'" in cluster.unit("master")
    cluster = Cluster("node001", gpus=2)
    cluster.run(s3={"bucket": "b", "mount_path": "/images"})
    assert "--root /home/ann --gpus all'" in cluster.unit("node001")


def test_the_password_is_in_files_of_root_and_of_the_user_only() -> None:
    cluster = Cluster("node001")
    cluster.run()
    files = cluster.master.ssh
    broker = tomllib.loads(files.read_file(SECRETS))
    assert cluster.given == files.read_file(SECRETS)
    password = broker["url"].removeprefix("redis://:").partition("@")[0]
    assert broker["url"].endswith(f"@{cluster.master.private_ip_address}:6379/0")
    assert (len(password), len(broker["key"])) == (40, 40)
    assert files.stat(SECRETS).mode == files.stat(CONF).mode == 0o600
    conf = files.read_file(CONF)
    assert f"bind {cluster.master.private_ip_address}\n" in conf
    assert hashlib.sha256(password.encode()).hexdigest() in conf
    for secret in (password, broker["key"]):
        assert secret not in conf
        for node in cluster.nodes:
            assert not any(secret in line for line in node.ssh.ran)
            assert secret not in node.ssh.read_file(f"/etc/systemd/system/{WORKER}")


def test_a_second_run_restarts_nothing_and_a_killed_one_is_finished() -> None:
    cluster = Cluster("node001")
    cluster.fails = "restart"  # the files are written, and nothing has been started
    with pytest.raises(RemoteCommandFailed):
        cluster.run()
    cluster.fails = ""
    first = [f"master {BROKER}", f"master {WORKER}", f"node001 {WORKER}"]
    for _ in range(2):
        cluster.run()
        assert sorted(cluster.restarts) == first
    cluster.master.ssh.unlink(SECRETS)  # a new password: all must read it
    cluster.run()
    assert sorted(cluster.restarts) == sorted(first * 2)


def test_nodes_come_and_go() -> None:
    cluster = Cluster("node001", "node002")
    cluster.run(CeleryWorkers(master_is_exec_host="false"))
    assert not cluster.master.ssh.path_exists(f"/etc/systemd/system/{WORKER}")
    last = cluster.nodes[-1]
    hooks = (last, cluster.nodes, cluster.master, "ann", "bash", {})
    CeleryWorkers().on_add_node(*hooks)
    before = len(last.ssh.ran)
    CeleryWorkers().on_remove_node(*hooks)
    assert last.ssh.ran[before:] == [f"systemctl disable --quiet --now {WORKER}"]
    CeleryWorkers().on_restart(cluster.nodes, *hooks[2:])
    assert all(node.ssh.ran[-1] == f"systemctl stop {WORKER}" for node in cluster.nodes)


def test_a_missing_celery_and_a_missing_redis_are_installed() -> None:
    cluster = Cluster()
    cluster.celery = False
    del cluster.master.ssh.programs["redis-server"]

    def install(shell: FakeShell, words: list[str], stdin: str) -> str:
        shell.answer("redis-server")
        return ""

    cluster.master.ssh.programs["apt-get"] = install
    cluster.run()
    ran = cluster.master.ssh.ran
    masked = ran.index("systemctl mask --quiet redis-server.service")
    installed = next(n for n, line in enumerate(ran) if "install redis-server" in line)
    assert masked < installed  # the Redis of the package has no password
    (line,) = (line for line in ran if "pip install" in line)
    assert celery_workers.REQUIREMENT in line
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert extras["optional-dependencies"]["celery"] == [celery_workers.REQUIREMENT]


def test_what_would_not_work_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ({"slots": "0"}, {"slots": "two"}, {"drain_s": "-1"}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            CeleryWorkers(**wrong)
    cluster = Cluster()
    cluster.foreign = True
    with pytest.raises(NodeError, match=r"broker\.toml of ann") as caught:
        cluster.run()
    assert "mv ~/.config/spearmint/broker.toml" in str(caught.value.fix)
    cluster = Cluster(gpus=1)
    cluster.gridengine = True
    with pytest.raises(SetupError) as both:
        cluster.run()
    assert "Grid Engine" in both.value.failed["master"]
    cluster = Cluster()
    cluster.nodes[0].ssh.programs["sh"] = lambda *_: ""  # a card, and no driver
    with pytest.raises(SetupError) as card:
        cluster.run()
    assert "driver" in card.value.failed["master"]
    cluster = Cluster("node001")
    cluster.mute = True
    monkeypatch.setattr(celery_workers, "_READY_S", 0.0)
    monkeypatch.setattr(celery_workers, "_PAUSE_S", 0.0)
    with pytest.raises(SetupError) as silent:
        cluster.run()
    assert "cannot connect" in silent.value.failed["node001"]


@pytest.mark.parametrize(
    "text", ["", "no toml =", 'url = "redis://:short@h:1/0"\nkey = "k"', "a=1"]
)
def test_damaged_secrets_are_replaced(text: str) -> None:
    found = secrets_of(text)
    assert secrets_of(broker_file(found, "10.0.0.1")) == found
    assert found.password.isalnum()
    assert found.password not in redis_conf(found, "10.0.0.1") + repr(found)


def test_words_of_the_unit_are_those_of_systemd() -> None:
    text = worker_unit(["/a b/100%", "$HOME"], user="ann", home="/home/ann", drain_s=7)
    (line,) = (line for line in text.splitlines() if line.startswith("ExecStart="))
    assert "100%%" in line
    assert "$$HOME" in line
    assert "TimeoutStopSec=7\n" in text
