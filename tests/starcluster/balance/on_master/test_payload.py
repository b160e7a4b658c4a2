"""What the master gets: the program as it is here, and a config without secrets."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from starcluster.balance.on_master.payload import SERVICES, pack
from starcluster.balance.on_master.unit import unit_text
from starcluster.config.portable import Target
from starcluster.errors import StarClusterError
from starcluster.setup import tools
from tests.starcluster.config.config_texts import BASE, load

TARGET = Target(cluster="gpu", region="eu-west-1", key_location="/root/key", folder="/opt/x")


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    plugins = tmp_path_factory.mktemp("plugins")
    (plugins / "mine.py").write_text("class Mine: pass\n")
    payload = pack({"config": b"secret"}, plugins, ("mine", "starcluster_plugins.nvidia_tune"))
    packed, digest = payload.archive()
    assert payload.archive()[1] == digest
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        tar.extractall(folder, filter="tar")
    assert "psutil" in payload.compiled
    return folder


def test_new_nodes_get_the_same_sge_jobs_from_the_master(release: Path) -> None:
    mine = Path(tools.sge_jobs.__file__).parent
    copied = release / "lib/sge_jobs"
    for path in mine.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            other = copied / path.relative_to(mine)
            assert other.read_bytes() == path.read_bytes()
            assert os.access(other, os.X_OK) == bool(path.stat().st_mode & 0o100), path


def test_it_has_every_package_of_its_own_that_it_imports(release: Path) -> None:
    lib = str(release / "lib")
    code = (
        f"import sys; sys.path.insert(0, {lib!r})\n"
        "import starcluster.aws.ec2, starcluster.cli.main, starcluster.setup.tools\n"
        "own = ('starcluster', 'starcluster_plugins', 'starmint', 'spearmint', 'sge_jobs')\n"
        "print(*(m.__file__ for n, m in sys.modules.items() if n in own))\n"
    )
    argv = [sys.executable, "-B", "-c", code]
    shown = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
    assert shown
    assert all(path.startswith(lib) for path in shown), shown


def test_it_has_the_services_that_it_calls_and_no_compiled_file(release: Path) -> None:
    services = {path.name for path in (release / "lib/botocore/data").iterdir() if path.is_dir()}
    assert services == SERVICES
    source = "".join(path.read_text() for path in (release / "lib/starcluster/aws").rglob("*.py"))
    called = re.findall(r'\b(?:call|pages)\(\s*"([a-z-]+)"', source)
    assert set(called) - {"iam"} <= SERVICES
    assert not [path for path in release.rglob("*") if path.suffix in (".so", ".pyc")]
    assert not [
        path for path in release.rglob("*") if path.is_file() and path.stat().st_mode & 0o77
    ]


def test_a_plugin_that_cannot_be_copied_is_named(tmp_path: Path) -> None:
    with pytest.raises(StarClusterError, match="nowhere_to_be_found"):
        pack({}, tmp_path, ("nowhere_to_be_found.plugin",))


def test_the_config_of_the_master_has_one_cluster_and_no_credentials(tmp_path: Path) -> None:
    script = tmp_path / "boot.sh"
    script.write_text("#!/bin/sh\n")
    key = tmp_path / "other.pem"
    key.write_text("")
    key.chmod(0o600)
    text = BASE + (
        f"[key other]\nkey_location = {key}\n"
        "[cluster gpu]\nextends = small\nplugins = tune\nvolumes = data\n"
        f"userdata_scripts = {script}\nkeyname = other\n"
        "[plugin tune]\nsetup_class = starcluster_plugins.nvidia_tune.NvidiaTune\n"
        "[plugin not_mine]\nsetup_class = a.B\npassword = hunter2\n"
        "[volume data]\nvolume_id = vol-0123456789abcdef0\nmount_path = /data\n"
    )
    mine = load(tmp_path, text)
    overrides = {"cluster_size": "7", "key_location": str(key)}
    template = mine.template("gpu", overrides)
    found = mine.for_master(template, overrides, TARGET)
    for secret in ("AKIAFILE", "s3cret", "hunter2", str(tmp_path)):
        assert secret not in found.text
    (path,) = found.files
    assert path == "/opt/x/userdata/000-boot.sh"
    assert found.files[path] == b"#!/bin/sh\n"
    there = tmp_path / "there"
    there.mkdir()
    shutil.copy(script, there)
    own = found.text.replace("/root/key", str(key)).replace(path, str(script))
    theirs = load(there, own)
    again = theirs.template("gpu")
    assert theirs.globals.master_of == "gpu"
    assert theirs.aws().aws_region_name == "eu-west-1"
    assert (again.cluster_size, again.plugins, again.volumes) == (
        7,
        template.plugins,
        template.volumes,
    )
    assert again == template


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("no systemd-analyze")
    text = unit_text("a-cluster", ["--max-nodes=3", "--budget=50"])
    unit = tmp_path / "starcluster-balancer.service"
    unit.write_text(text.replace("/opt/starcluster-balancer/current/starcluster", "/bin/true"))
    done = subprocess.run([verify, "verify", str(unit)], capture_output=True, text=True)
    mine = [line for line in done.stderr.splitlines() if unit.name in line]
    assert (done.returncode, mine) == (0, [])
    assert "loadbalance --max-nodes=3 --budget=50 a-cluster\n" in text
