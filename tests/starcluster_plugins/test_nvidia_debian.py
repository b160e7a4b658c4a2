"""Debian's own driver packages: the sources of apt, and the install script with fake apt tools."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from starcluster.testing import FakeNode, FakeShell
from starcluster_plugins import nvidia_debian, nvidia_driver
from starcluster_plugins.nvidia_debian import with_components

CLOUD_12 = """\
Types: deb deb-src
URIs: mirror+file:/etc/apt/mirrors/debian.list
Suites: bookworm bookworm-updates bookworm-backports
Components: main

Types: deb deb-src
URIs: mirror+file:/etc/apt/mirrors/debian-security.list
Suites: bookworm-security
Components: main
"""
OTHER = """\
Types: deb
URIs: https://packages.example.org/apt
Suites: stable
Components: main
"""
ALL = "main contrib non-free non-free-firmware"


def test_stanzas_of_debian_get_the_components_and_others_stay() -> None:
    new = with_components(f"{CLOUD_12}\n{OTHER}")
    assert new == CLOUD_12.replace(": main", f": {ALL}") + f"\n{OTHER}"
    assert with_components(new) == new


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("deb http://deb.debian.org/debian bookworm main", f" {ALL}"),
        ("deb [arch=amd64] http://deb.debian.org/debian/ trixie main non-free-firmware", ""),
        ("deb http://security.debian.org/debian-security bookworm-security main", f" {ALL}"),
    ],
)
def test_lines_of_debian_get_what_is_missing(line: str, expected: str) -> None:
    (new,) = with_components(f"{line}\n").splitlines()
    words = new.split(" main ")[1].split()
    assert sorted(words) == ["contrib", "non-free", "non-free-firmware"]
    assert new.startswith(line)
    assert new.endswith(expected)


@pytest.mark.parametrize(
    "line",
    [
        "deb https://packages.example.org/apt stable main",
        "# deb http://deb.debian.org/debian bookworm main",
        "deb https://download.example.org/linux/debian bookworm stable",
    ],
)
def test_other_lines_stay(line: str) -> None:
    assert with_components(f"{line}\n") == f"{line}\n"


def test_a_node_with_debian_gets_debians_packages_and_ubuntu_its_own() -> None:
    for name, version, expected in (("debian", "535", "535"), ("ubuntu", "default", "580-server")):
        scripts: list[tuple[str, str]] = []

        def sh(shell: FakeShell, argv: list[str], stdin: str) -> tuple[int, str]:
            scripts.append((argv[2], stdin))  # noqa: B023 - called in this iteration
            return 0, ""

        shell = FakeShell(name="node001")
        shell.programs["sh"] = sh
        shell.makedirs("/etc/apt/sources.list.d")
        shell.add_file("/etc/os-release", f'PRETTY_NAME="x"\nID={name}\nID_LIKE=debian\n')
        shell.add_file("/etc/apt/sources.list.d/debian.sources", CLOUD_12)
        nvidia_driver.install(FakeNode(shell=shell), version)
        ((argument, script),) = scripts
        assert argument == expected
        assert (nvidia_debian.SCRIPT in script) is (name == "debian")
        sources = shell.read_file("/etc/apt/sources.list.d/debian.sources")
        assert ("non-free-firmware" in sources) is (name == "debian")


def run(tmp_path: Path, version: str, *, candidate: str = "535.261.03-1", headers: int = 0) -> str:
    """Run the script with fake tools; return what they were asked, and what it said."""
    tools = {
        "uname": "echo 6.1.0-50-cloud-amd64",
        "apt-cache": f'[ "$1" = policy ] && echo "  Candidate: {candidate}"; exit {headers}',
        "apt-get": 'echo "apt-get $*" >> asked',
        "apt-mark": 'echo "apt-mark $*" >> asked',
    }
    (tmp_path / "asked").touch()
    for name, text in tools.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        ["sh", "-s", version],
        input=f"set -eu\napt=apt-get\n{nvidia_debian.SCRIPT}",
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) is (not done.stderr), done.stderr
    return (tmp_path / "asked").read_text() + done.stderr


@pytest.mark.parametrize(
    ("version", "module"),
    [
        ("535", "nvidia-kernel-dkms"),
        ("535-server", "nvidia-kernel-dkms"),
        ("default", "nvidia-kernel-dkms"),
        ("535-open", "nvidia-open-kernel-dkms"),
        ("default-open", "nvidia-open-kernel-dkms"),
    ],
)
def test_the_kernel_module_is_built_for_the_running_kernel(
    tmp_path: Path, version: str, module: str
) -> None:
    headers, driver, held = run(tmp_path, version).splitlines()
    assert headers.endswith("install --no-install-recommends linux-headers-6.1.0-50-cloud-amd64")
    assert f" {module} nvidia-smi " in driver
    assert held.startswith(f"apt-mark hold {module} nvidia-smi ")


def test_another_driver_than_debians_is_refused_before_anything_is_installed(
    tmp_path: Path,
) -> None:
    said = run(tmp_path, "580-server")
    assert "set driver = 535 or default" in said
    assert "install" not in said
    assert "set driver = 550 " in run(tmp_path, "5", candidate="550.163.01-2")


def test_a_kernel_whose_headers_debian_has_dropped_is_named(tmp_path: Path) -> None:
    said = run(tmp_path, "535", headers=1)
    assert "linux-headers-6.1.0-50-cloud-amd64" in said
    assert "--stock" in said
