"""Hosts of the test bed that answer SSH, without a cloud, to test connections and setup."""

from __future__ import annotations

import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from starcluster.aws import Instance
from starcluster.launch.userdata import HostKey, new_host_key, user_data
from starcluster.model import TAG_ALIAS, TAG_CLUSTER
from starcluster.node import Node, Shell
from tests.testbed import fabric
from tests.testbed.cloud import _join_network
from tests.testbed.cloud_init import Facts, prepare, start

T = TypeVar("T")


class SshHosts:
    """Hosts with the host names of AWS, sshd, one key pair and known host keys.

    Attributes:
        machines: The hosts by their future alias.
    """

    def __init__(
        self,
        *aliases: str,
        gpus: int = 0,
        binds: Iterable[Path] = (),
        profile: str = "",
        root: Path | None = None,
    ) -> None:
        self._aliases, self._gpus, self._profile = aliases, gpus, profile
        self.fabric = fabric.Fabric(binds=binds, root=root)
        self._folder = tempfile.TemporaryDirectory(prefix="ssh-hosts-")
        self.key = Path(self._folder.name) / "key"
        self.host_key: HostKey = new_host_key()
        self.machines: dict[str, fabric.Node] = {}

    def __enter__(self) -> SshHosts:
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.key)]
        subprocess.run(argv, check=True)
        self.fabric.__enter__()
        try:
            self.add(*self._aliases)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.fabric.__exit__()
        self._folder.cleanup()

    def add(self, *aliases: str) -> None:
        """Boot more hosts."""
        for alias in aliases:
            name = f"ip-10-77-0-{len(self.fabric.nodes) + 10}"
            (machine,) = self.fabric.add(name)
            facts = Facts(
                id=f"i-{alias}",
                public_key=self.key.with_suffix(".pub").read_text(),
                user_data=user_data(self.host_key).encode(),
                gpus=self._gpus,
                profile=self._profile,
            )
            prepare(machine, facts)
            start(machine, facts, first=True)
            self.machines[alias] = machine

    def reboot(self, *aliases: str) -> None:
        """Kill all processes of these hosts, then boot them."""
        for alias in aliases:
            self.machines[alias].kill()
        for alias in aliases:
            self.machines[alias].boot()
            start(self.machines[alias], Facts(id=f"i-{alias}"), first=False)

    def shell(self, alias: str, *, host_key: str = "", timeout_s: float = 60.0) -> Shell:
        """Return a shell of one host."""
        return Shell(
            self.machines[alias].ip,
            user="root",
            key=self.key,
            host_key=host_key or self.host_key.public,
            timeout_s=timeout_s,
            name=alias,
        )

    def nodes(self, aliases: Iterable[str] = ()) -> list[Node]:
        """Return the hosts as nodes of a cluster."""
        return [
            Node(self._instance(alias), lambda one: self.shell(one.alias))
            for alias in aliases or self.machines
        ]

    def _instance(self, alias: str) -> Instance:
        return Instance(
            id=f"i-{alias}",
            state="running",
            type="c5.large",
            image_id="ami-1",
            zone="us-east-1a",
            private_ip=self.machines[alias].ip,
            tags={TAG_CLUSTER: "test", TAG_ALIAS: alias},
        )

    def within(self, function: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """Return ``function(...)``, called in a thread within the hosts' network."""
        results: list[T] = []
        errors: list[BaseException] = []

        def body() -> None:
            try:
                _join_network(self.fabric.pid)
                results.append(function(*arguments, **named))
            except BaseException as error:  # noqa: BLE001 - re-raised below
                errors.append(error)

        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        if errors:
            raise errors[0]
        return results[0]
