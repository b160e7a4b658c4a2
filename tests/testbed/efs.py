"""Hosts that act as mount targets of EFS, with TLS or without, behind the fake EC2."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.testbed.fabric import Fabric, Node
from tests.waiting import until

_TLS_PORT, _BEHIND_TLS = 2049, 2050
_OF_SERVER = f"""
foreground = yes
pid =
[efs]
accept = {_TLS_PORT}
connect = 127.0.0.1:{_BEHIND_TLS}
cert = /root/server.pem
"""


class Authority:
    """A certificate authority; its certificate is in ``folder / "ca.pem"``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        _openssl(
            *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "9", "-subj", "/CN=test"),
            *("-keyout", str(folder / "ca.key"), "-out", str(folder / "ca.pem")),
        )

    def issue(self, name: str) -> str:
        """Return a private key and a certificate for a host name, as PEM."""
        key, request, made = (self.folder / f"{name}.{end}" for end in ("key", "csr", "pem"))
        extensions = self.folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName = DNS:{name}\n")
        _openssl(
            *("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name[:60]}"),
            *("-keyout", str(key), "-out", str(request)),
        )
        ca = ("-CA", str(self.folder / "ca.pem"), "-CAkey", str(self.folder / "ca.key"))
        _openssl(
            *("x509", "-req", "-days", "9", "-in", str(request), *ca, "-CAcreateserial"),
            *("-extfile", str(extensions), "-out", str(made)),
        )
        return key.read_text() + made.read_text()


class MountTarget:
    """A host that serves a directory by the stand-in for NFS, like a file system of EFS."""

    def __init__(self, fabric: Fabric, name: str, ip: str) -> None:
        self.node = Node(fabric, name, ip)
        fabric.nodes[name] = self.node
        self.node.boot()
        self.node.write("/var/lib/nfs/etab", "/srv *(rw,fsid=0)\n")
        self.node.write("/etc/exports", "/srv *(rw,fsid=0,no_subtree_check)\n")

    def serve(self, pem: str = "") -> None:
        """Listen; with ``pem`` only by TLS, with this key and certificate."""
        port = str(_BEHIND_TLS if pem else _TLS_PORT)
        done = self.node.run("/etc/init.d/nfs-kernel-server", "start", port)
        assert done.returncode == 0, done.stderr
        if pem:
            self.node.run("pkill", "stunnel4")
            until(lambda: not self.answers(_TLS_PORT))
            self.node.write("/root/server.pem", pem, 0o600)
            self.node.write("/root/stunnel.conf", _OF_SERVER)
            argv = "setsid stunnel4 /root/stunnel.conf </dev/null >/dev/null 2>&1 &"
            self.node.run("sh", "-c", argv)
            until(lambda: self.answers(_TLS_PORT))

    def answers(self, port: int) -> bool:
        """Return whether the host listens on a port."""
        return self.node.run("bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{port}").returncode == 0


def _openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True, timeout=60)
