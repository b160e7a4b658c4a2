"""A stateful stand-in for EC2: moto's server in a separate process, over HTTP."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from starcluster.aws import client
from starcluster.aws.ec2 import Ec2
from starcluster.config import config
from starcluster.config.sections import AwsSettings
from tests import commands
from tests.starcluster.front import Front, in_front_of
from tests.testbed.brokers import free_port

START_LIMIT_S = 300
IMAGE = "ami-785db401"
WINDOWS = "ami-12c6146b"
# Otherwise a reset of the server loads 1301 images in each region.
_IMAGES = [
    {
        "ami_id": image,
        "state": "available",
        "public": True,
        "owner_id": owner,
        "image_location": "amazon/getting-started",
        "root_device_type": "ebs",
        "root_device_name": "/dev/sda1",
        "description": name,
        "image_type": "machine",
        "platform": platform,
        "architecture": "x86_64",
        "name": name,
        "virtualization_type": "hvm",
        "hypervisor": "xen",
        "sriov": "simple",
    }
    for image, owner, name, platform in (
        (IMAGE, "099720109477", "ubuntu/images/hvm-ssd/ubuntu-16.04-amd64-server", None),
        (WINDOWS, "801119661308", "Windows_Server-2008-R2_SP1-English-64Bit-Base", "windows"),
    )
]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def moto_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the server; it runs for the whole session."""
    port = free_port()
    log = tmp_path_factory.mktemp("moto") / "log"
    images = log.with_name("images.json")
    images.write_text(json.dumps(_IMAGES))
    environment = os.environ | {"MOTO_AMIS_PATH": str(images)}
    with log.open("wb") as output:
        argv = [
            sys.executable,
            "-m",
            "tests.testbed.moto_server",
            "-H",
            "127.0.0.1",
            "-p",
            str(port),
        ]
        process = subprocess.Popen(argv, stdout=output, stderr=output, env=environment)
    try:
        _wait_for(port, process, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    limit = time.monotonic() + START_LIMIT_S
    while time.monotonic() < limit and process.poll() is None:
        try:
            _ask(port, "GET", "/moto-api/data.json")
        except OSError:
            time.sleep(0.1)
        else:
            return
    pytest.fail(f"moto's server did not start:\n{log.read_text()}")


def _ask(port: int, method: str, path: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request(method, path)
        connection.getresponse().read()
    finally:
        connection.close()


@pytest.fixture(autouse=True)
def bills(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Directory of the bills that commands record; a test does not write to the home."""
    folder = tmp_path_factory.mktemp("bills")
    monkeypatch.setattr("starcluster.money.bill_store.FOLDER", str(folder))
    return folder


@pytest.fixture
def aws(moto_process: str) -> str:
    """Address of the server, reset to its initial state."""
    _ask(int(moto_process.rsplit(":", 1)[1]), "POST", "/moto-api/reset")
    return moto_process


@pytest.fixture
def client_to() -> Callable[[str, str], Ec2]:
    """A function that returns the EC2 of an address and a region."""

    def opened(address: str, region: str) -> Ec2:
        settings = AwsSettings(
            aws_access_key_id="testing",
            aws_secret_access_key="testing",  # noqa: S106
            aws_endpoint_url=address,
        )
        return Ec2(settings, region)

    return opened


@pytest.fixture
def ec2(aws: str, client_to: Callable[[str, str], Ec2]) -> Ec2:
    """EC2 of moto."""
    return client_to(aws, "us-east-1")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Number of calls by request."""
    counted: Counter[str] = Counter()
    original = client.AwsClient._do

    def do(self: Any, client: Any, operation: str, call: Any) -> Any:
        counted[operation] += 1
        return original(self, client, operation, call)

    monkeypatch.setattr(client.AwsClient, "_do", do)
    return counted


@pytest.fixture
def settings(tmp_path: Path, ec2: Ec2) -> config.Config:
    """A config with the cluster template ``big``."""
    ec2.delete_key_pair("big")
    _, key = ec2.create_key_pair("big")
    (tmp_path / "key").write_text(key)
    (tmp_path / "key").chmod(0o600)
    path = tmp_path / "config"
    path.write_text(
        f"[key big]\nkey_location = {tmp_path / 'key'}\n[cluster big]\nkeyname = big\n"
        f"cluster_size = 2\nnode_instance_type = t3.micro\nnode_image_id = {IMAGE}\n"
        "root_volume_size = 40\n"
    )
    path.chmod(0o600)
    return config.load(path, {})


@pytest.fixture
def front(aws: str) -> Iterator[Front]:
    """The server; tests set its answers."""
    with in_front_of(aws) as found:
        found.hourly = {"t3.micro": 0.5}
        found.monthly = {"gp2": 0.1, "gp3": 0.08}
        yield found


@pytest.fixture
def big(settings: config.Config, front: Front, tmp_path: Path) -> Run:
    """A function that runs ``starcluster`` with the template ``big``."""
    path = settings.path
    path.write_text(f"{path.read_text()}[aws info]\naws_endpoint_url = {front.address}\n")

    def call(*words: str, answer: str = "") -> subprocess.CompletedProcess[str]:
        given = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
        environment = os.environ | given | {"HOME": str(tmp_path)}
        words = ("-c", str(path), "-r", "us-east-1", *words)
        return commands.starcluster(*words, stdin=answer, env=environment, cwd=tmp_path)

    return call
