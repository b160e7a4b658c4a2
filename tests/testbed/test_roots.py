"""Fresh roots: what they are made of, and their cache."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from sge_jobs import DEBIAN_PACKAGES, HWLOC_PACKAGES
from tests.testbed import roots
from tests.testbed.fabric import Fabric
from tests.testbed.image import cache_folder, layer

pytestmark = [pytest.mark.debootstrap, pytest.mark.sge]


def test_the_pinned_packages_are_those_that_debian_12_installs() -> None:
    files = list(roots.debian_packages().glob("*.deb"))
    found = {path.name: path for path in files if path.name.startswith(("gridengine-", "libhwloc"))}
    every = (*DEBIAN_PACKAGES, *HWLOC_PACKAGES)
    pinned = [each for each in every if each.architecture in ("all", "amd64")]
    assert set(found) == {package.file for package in pinned}
    for package in pinned:
        data = found[package.file].read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (package.size, package.sha256)


def test_a_node_has_only_what_its_root_has() -> None:
    with Fabric(root=roots.root(roots.DEBIAN_13)) as fabric:
        (node,) = fabric.add("fresh")
        assert "VERSION_CODENAME=trixie" in node.run("cat", "/etc/os-release").stdout
        assert node.run("test", "-e", "/usr/lib/gridengine").returncode
        assert node.run("sh", "-c", "command -v pip gcc").returncode
        node.write("/etc/changed", "on this node")
    assert not (roots.root(roots.DEBIAN_13) / "etc/changed").exists()


def test_the_cell_of_an_ubuntu_has_the_packages_of_debian_12(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, debian = roots.root(roots.UBUNTU), str(roots.debian_packages())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    packages = [name for name in roots.PACKAGES if not name.startswith("nfs")]
    upper = layer(base, packages, debian)
    text = (upper / "var/lib/dpkg/status").read_text()
    assert text.count("\nVersion: 8.1.9+dfsg-10") == 4
    assert "8.1.9+dfsg-11ubuntu" not in text
    assert (upper / "usr/lib/gridengine/spooldefaults.bin").stat().st_size > 10_000


def test_a_build_that_fails_leaves_nothing_and_a_finished_one_is_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    script = tmp_path / "build.sh"
    script.write_text('echo half >"$2/file"; echo no mirror; exit 3\n')
    monkeypatch.setattr(roots, "_BUILD", script)
    with pytest.raises(RuntimeError, match="no mirror"):
        roots.root(roots.DEBIAN_12)
    assert not [path for path in cache_folder().iterdir() if path.is_dir()]
    script.write_text('[ -z "$(ls "$2")" ]; echo "$1" >"$2/file"\n')
    made = roots.root(roots.DEBIAN_12)
    (made / "mark").touch()
    assert roots.root(roots.DEBIAN_12) == made
    assert (made / "mark").exists()
    monkeypatch.setattr(roots, "PACKAGES", (*roots.PACKAGES, "htop"))
    assert roots.root(roots.DEBIAN_12) != made
