"""The hosts of the instances of the fake EC2, and the faults that a test requests."""

from __future__ import annotations

import base64
import json
import threading
import time
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPES

from tests.testbed import cloud_init
from tests.testbed.fabric import Fabric, Node, address_6

_UNLOGGED = {"UserData", "PublicKeyMaterial"}


class Faults:
    """The log of calls, and the faults that a test requests."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.folder = Path(settings["folder"])
        self._log = threading.Lock()

    def log(self, action: str, parameters: dict[str, Any], error: str = "") -> None:
        """Append a call to the log of the clients' calls."""
        shown = {key: value for key, value in parameters.items() if key not in _UNLOGGED}
        row = {"at": time.time(), "action": action, "parameters": shown, "error": error}
        with self._log, (self.folder / "calls.jsonl").open("a") as log:
            log.write(json.dumps(row, default=str) + "\n")

    def fault(self, action: str) -> dict[str, Any]:
        """Return and remove the next fault that a test has requested; {} if there is none."""
        for path in sorted((self.folder / "faults").glob(f"{action}-*")):
            try:
                fault: dict[str, Any] = json.loads(path.read_text())
                path.unlink()
            except OSError:  # another thread took it
                continue
            return fault
        return {}

    def lacks(self, instance_type: str, zone: str, market: str) -> bool:
        """Return whether a test has declared that there is no capacity for this."""
        path = self.folder / "faults" / "capacity"
        rows = json.loads(path.read_text()) if path.exists() else []
        asked = {"type": instance_type, "zone": zone, "market": market}
        return any(all(asked[key] == value for key, value in row.items()) for row in rows)


class Hostless(Faults):
    """Instances without hosts, which run ``boot_s`` after their launch."""

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__(settings)
        self.boot_s: float = settings["boot_s"]

    def boot(self, instance: Any, number: int | None = None) -> None:
        """Boot an instance; ``number`` is its index in a new launch."""
        _state(instance, "pending", 0)
        threading.Timer(self.boot_s, self._run, args=(instance,)).start()

    def _run(self, instance: Any) -> None:
        if instance.state == "pending":
            _state(instance, "running", 16)

    def reboot(self, instance: Any) -> None:
        """Do nothing."""

    def lose(self, instance: Any) -> None:
        """Stop an instance ``boot_s`` after the request."""
        _state(instance, "stopping", 64)
        threading.Timer(self.boot_s, self._stopped, args=(instance,)).start()

    def _stopped(self, instance: Any) -> None:
        if instance.state == "stopping":
            _state(instance, "stopped", 80)

    def remove(self, instance: Any) -> None:
        """Do nothing."""


class Machines(Faults):
    """The nodes of all instances; the fake EC2 calls it when an instance changes."""

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__(settings)
        self.fabric = Fabric.of(
            settings["pid"],
            Path(settings["work"]),
            map(Path, settings["binds"]),
            settings["net"],
            Path(settings["root"]) if settings["root"] else None,
        )
        self.profile: str = settings["profile"]
        self.boot_s: float = settings["boot_s"]
        self.nodes: dict[str, Node] = {}
        self._facts: dict[str, cloud_init.Facts] = {}
        self._broken: set[str] = set()  # instances whose GPUs are listed but do not work
        self._locks: dict[str, threading.Lock] = {}

    def boot(self, instance: Any, number: int | None = None) -> None:
        """Boot an instance in the background; ``number`` is its index in a new launch."""
        _state(instance, "pending", 0)
        self._locks.setdefault(instance.id, threading.Lock())
        if number is not None and self.fault(f"gpu-{number}"):
            self._broken.add(instance.id)
        threading.Thread(target=self._boot, args=(instance,), daemon=True).start()

    def _boot(self, instance: Any) -> None:
        fault = self.fault("boot")
        with self._locks[instance.id]:
            first = instance.id not in self.nodes
            if first:
                self._make(instance)
            node = self.nodes[instance.id]
            node.public_ip = instance.public_ip or ""
            time.sleep(self.boot_s)
            if instance.state != "pending":  # stopped or terminated since then
                return
            node.boot()
            if fault.get("how") != "no-ssh":
                cloud_init.start(node, self._facts[instance.id], first=first)
            self._publish(instance, node)
            if instance.state == "pending":  # not terminated during the boot
                _state(instance, "running", 16)

    def _make(self, instance: Any) -> None:
        key = instance.ec2_backend.key_pairs.get(instance.key_name)
        material = getattr(key, "material_public", b"") or b""
        data = instance.user_data
        gpus = INSTANCE_TYPES.get(instance.instance_type, {}).get("GpuInfo", {}).get("Gpus", [])
        self._facts[instance.id] = cloud_init.Facts(
            id=instance.id,
            public_key=material.decode() if isinstance(material, bytes) else material,
            user_data=base64.b64decode(data.as_bytes()) if data else b"",
            gpus=sum(each["Count"] for each in gpus),
            gpus_work=instance.id not in self._broken,
            profile=self.profile,
        )
        name = f"ip-{instance.private_ip.replace('.', '-')}"
        self.nodes[instance.id] = node = Node(self.fabric, name, instance.private_ip)
        cloud_init.prepare(node, self._facts[instance.id])

    def _publish(self, instance: Any, node: Node) -> None:
        row = {"name": node.name, "ip": node.ip, "public_ip": node.public_ip, "pid": node.pid}
        new = self.folder / "nodes" / f".{instance.id}"
        new.write_text(json.dumps(row))
        new.replace(new.with_name(instance.id))

    def at(self, address: str) -> cloud_init.Facts | None:
        """Return the facts of the instance with an address."""
        for id, node in list(self.nodes.items()):
            if address in (node.ip, node.public_ip) or ip_address(address) == ip_address(
                address_6(node.ip)
            ):
                return self._facts[id]
        return None

    def reboot(self, instance: Any) -> None:
        """Kill all processes of an instance, and boot it."""
        self.lose(instance)
        self.boot(instance)

    def lose(self, instance: Any) -> None:
        """Kill all processes of an instance; keep its disk."""
        with self._locks[instance.id]:
            node = self.nodes.get(instance.id)
            if node is not None and node.is_up:
                node.kill()
            (self.folder / "nodes" / instance.id).unlink(missing_ok=True)

    def remove(self, instance: Any) -> None:
        """Kill all processes of an instance and delete its disk."""
        self.lose(instance)
        with self._locks[instance.id]:
            node = self.nodes.pop(instance.id, None)
            if node is not None:
                node.remove()


def _state(instance: Any, name: str, code: int) -> None:
    instance._state.name, instance._state.code = name, code
