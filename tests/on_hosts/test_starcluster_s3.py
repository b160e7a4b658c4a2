"""Mountpoint for Amazon S3 on real hosts: a signed package, apt-get, fstab and moto's S3.

The program itself is a stand-in: it lists the bucket over HTTP and mounts a copy of its objects.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from subprocess import DEVNULL

import pytest

from starcluster.config import Key, NodeType, Template, Volume
from starcluster.errors import RemoteCommandFailed, SetupError
from starcluster.node import Node
from starcluster.setup import add_nodes, mountpoint, set_up
from tests.testbed.cloud import REPOSITORY
from tests.testbed.ssh_hosts import SshHosts
from tests.waiting import until

pytestmark = pytest.mark.sge

PROGRAM = """#!/usr/bin/python3
import os, subprocess, sys, urllib.parse, urllib.request, xml.etree.ElementTree as xml
source, path, _, words = sys.argv[1:5]
options = dict(word.partition("=")[::2] for word in words.split(","))
assert not [name for name in options if name.startswith("x-")]
bucket, _, prefix = source.removeprefix("s3://").partition("/")
address = options["endpoint-url"] + "/" + bucket
assert "allow-other" in options and os.geteuid() == 0
try:
    page = urllib.request.urlopen(address + "?list-type=2&prefix=" + prefix, timeout=60).read()
except OSError as error:
    sys.exit(f"Error: Failed to create S3 client: {error}")
how = "mode=755,uid=" + options["uid"]
subprocess.run(["mount", "-t", "tmpfs", "-o", how, "s3", path], check=1)
for key in xml.fromstring(page).iter("{http://s3.amazonaws.com/doc/2006-03-01/}Key"):
    data = urllib.request.urlopen(address + "/" + urllib.parse.quote(key.text)).read()
    with open(os.path.join(path, key.text.removeprefix(prefix)), "wb") as file:
        file.write(data)
if "ro" in options:
    subprocess.run(["mount", "-o", "remount,ro", path], check=1)
"""
UPLOAD = """
import sys, urllib.request
headers = {"x-amz-acl": "public-read", "Content-Type": "text/plain"}
data = sys.argv[2].encode()
request = urllib.request.Request(sys.argv[1], method="PUT", data=data, headers=headers)
urllib.request.urlopen(request, timeout=60)
"""
FILE = f"mount-s3-{mountpoint.VERSION}-x86_64.deb"
TEMPLATE = Template(
    name="small",
    key=Key(name="key", location=Path("/nowhere")),
    keyname="key",
    cluster_size=2,
    node_instance_type=(NodeType(instance_type="c5.large"),),
)


def package(folder: Path) -> Path:
    """Build a package of the stand-in."""
    root = folder / "root"
    for path, text in {
        "DEBIAN/control": "Package: mount-s3\nVersion: 9\nArchitecture: amd64\n"
        "Maintainer: Nobody <nobody@example.org>\nDescription: stand-in\n",
        "usr/bin/mount-s3": PROGRAM,
        "sbin/mount.mount-s3": PROGRAM,
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
        (root / path).chmod(0o755)
    (root / "DEBIAN").chmod(0o755)
    argv = ["dpkg-deb", "--root-owner-group", "--build", str(root), str(folder / FILE)]
    subprocess.run(argv, check=True, capture_output=True, timeout=300)
    return folder / FILE


class Signer:
    """A key that signs packages."""

    def __init__(self, home: Path, name: str) -> None:
        home.mkdir(mode=0o700)
        self._gpg = ["gpg", "--homedir", str(home), "--batch", "--passphrase", ""]
        self.run("--quick-generate-key", name, "rsa2048", "sign")
        rows = self.run("--with-colons", "--list-keys").splitlines()
        self.fingerprint = next(row.split(":")[9] for row in rows if row.startswith("fpr"))
        self.public = self.run("--armor", "--export")

    def run(self, *words: str) -> str:
        argv = [*self._gpg, *words]
        return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=300).stdout

    def sign(self, file: Path) -> None:
        self.run("--yes", "--armor", "--detach-sign", "-o", f"{file}.asc", str(file))


@pytest.fixture(scope="module")
def hosts() -> Iterator[SshHosts]:
    binds = dict.fromkeys([REPOSITORY, Path(sys.prefix).resolve(), Path(sys.base_prefix)])
    with SshHosts("master", "node001", "node002", binds=binds) as made:
        yield made


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache, with a package that a trusted key has signed."""
    monkeypatch.setattr(mountpoint, "CACHE", tmp_path)
    mountpoint._download.cache_clear()
    folder = tmp_path / "mount-s3"
    folder.mkdir()
    file = package(folder)
    aws, other = Signer(tmp_path / "aws", "aws"), Signer(tmp_path / "other", "other")
    monkeypatch.setattr(mountpoint, "FINGERPRINTS", ("0" * 40, aws.fingerprint))
    (folder / "KEYS").write_text(other.public + aws.public)
    other.sign(file)
    file.with_name("of-another.asc").write_bytes(Path(f"{file}.asc").read_bytes())
    aws.sign(file)
    return folder


@pytest.fixture
def s3(hosts: SshHosts) -> Iterator[str]:
    """Address of moto's S3 with the bucket ``sets``, in the hosts' network."""
    host = hosts.machines["node002"]
    argv = [sys.executable, "-m", "moto.server", "-H", host.ip, "-p", "5000"]
    with subprocess.Popen(host.enter(argv), stdout=DEVNULL, stderr=DEVNULL) as server:
        url = f"http://{host.ip}:5000"

        def upload(path: str, text: str = "") -> bool:
            return host.run("python3", "-c", UPLOAD, f"{url}/{path}", text).returncode == 0

        until(lambda: upload("sets"), 60, 0.5)
        assert upload("sets/train/one", "1")
        assert upload("sets/other", "2")
        yield url
        server.kill()


def test_all_nodes_read_a_bucket_and_its_objects_are_no_ones_home(
    hosts: SshHosts, cache: Path, s3: str
) -> None:
    nodes = hosts.nodes(["master", "node001"])
    volume = Volume(
        name="sets",
        mount_path="/sets",
        bucket="sets",
        prefix="train/",
        mount_options=f"endpoint-url={s3},force-path-style",
    )
    template = replace(TEMPLATE, volumes=(volume,))

    def use() -> None:
        assert set_up(nodes, template).failed == {}
        for node in nodes:
            assert node.ssh.execute("su - sgeadmin -c 'cat /sets/one; ls /sets'") == ["1one"]
            assert node.ssh.execute("stat -c %U /sets") == ["sgeadmin"]
            assert node.ssh.execute("apt-mark showhold") == ["mount-s3"]
        fstab = nodes[0].ssh.read_file("/etc/fstab")
        assert fstab.count("s3://sets/train/ /sets mount-s3 ") == 1
        assert set_up(nodes, template).failed == {}
        assert nodes[0].ssh.read_file("/etc/fstab") == fstab
        (new,) = hosts.nodes(["node002"])
        assert add_nodes([new], nodes, template).failed == {}
        assert new.ssh.execute("cat /sets/one") == ["1"]
        # As at a boot
        new.ssh.execute("umount /sets; mount /sets")
        assert new.ssh.execute("cat /sets/one") == ["1"]

    hosts.within(use)


@pytest.mark.parametrize("how", ["changed", "of another key", "without"])
def test_a_package_that_aws_did_not_sign_is_not_installed(
    hosts: SshHosts, cache: Path, how: str
) -> None:
    signature = cache / f"{FILE}.asc"
    if how == "changed":
        with (cache / FILE).open("ab") as file:
            file.write(b"\0")
    elif how == "without":
        signature.write_text("")
    else:
        signature.write_bytes((cache / FILE).with_name("of-another.asc").read_bytes())
    (node,) = hosts.nodes(["node002"])

    def use(node: Node) -> None:
        node.ssh.execute("apt-get purge -y --allow-change-held-packages mount-s3; true")
        with pytest.raises(RemoteCommandFailed, match="not signed by AWS"):
            mountpoint.install_mountpoint(node)
        assert not node.ssh.which("mount-s3")

    hosts.within(use, node)


def test_a_bucket_that_is_gone_ends_the_setup_of_the_node_with_the_reason(
    hosts: SshHosts, cache: Path
) -> None:
    nodes = hosts.nodes(["master"])
    address = f"http://{hosts.machines['node001'].ip}:5999"
    options = f"endpoint-url={address}"
    lost = Volume(name="lost", mount_path="/lost", bucket="lost", mount_options=options)

    def use() -> None:
        with pytest.raises(SetupError, match=r"volume lost \(lost\): .*/lost.*S3 client"):
            set_up(nodes, replace(TEMPLATE, volumes=(lost,)))
        assert "/lost" not in nodes[0].ssh.read_file("/etc/fstab")

    hosts.within(use)
