"""Requests of plugins to a node, run by the real apt-get, pip, modprobe and exportfs."""

from __future__ import annotations

import base64
import hashlib
import logging
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from starcluster.errors import RemoteCommandFailed
from starcluster.plugins.pkginstaller import PackageInstaller
from starcluster.plugins.pypkginstaller import PyPkgInstaller
from starcluster.setup import steps
from starcluster_plugins import nvidia_driver
from starcluster_plugins.project_env import _PACKAGES, ProjectEnv
from tests.on_hosts.test_starcluster_setup_on_hosts import TEMPLATE
from tests.testbed.cloud import REPOSITORY
from tests.testbed.ssh_hosts import SshHosts
from tests.waiting import until

pytestmark = pytest.mark.sge
logging.getLogger("paramiko").setLevel(logging.CRITICAL)
PYTHON = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
SITE = Path(next(path for path in sys.path if path.endswith("site-packages")))
NO_INDEX = "[global]\nno-index = true\nno-deps = true\n"
# A repository of one package, the only one that apt-get can find.
REPOSITORY_OF_ONE = r"""
set -e
mkdir -p /srv/made/DEBIAN /srv/made/usr/share/tiny /srv/repo
cd /srv
printf 'Package: tiny\nVersion: 1.2\nArchitecture: all\nMaintainer: x <x@example.org>\n' \
    > made/DEBIAN/control
echo 'Description: says that it is there' >> made/DEBIAN/control
echo hello > made/usr/share/tiny/word
dpkg-deb --build made repo/tiny.deb > /dev/null
{ dpkg-deb --field repo/tiny.deb
  echo "Filename: ./tiny.deb"
  echo "Size: $(stat -c %s repo/tiny.deb)"
  echo "SHA256: $(sha256sum repo/tiny.deb | cut -d' ' -f1)"; } > repo/Packages
rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*
echo 'deb [trusted=yes] file:/srv/repo ./' > /etc/apt/sources.list
"""


# Dependencies of the project: link the packages of this environment, because there is no index.
DEPENDENCIES = r"""
mkdir -p /srv/deps
for path in "$1"/*; do
    case ${path##*/} in *starmint* | *.pth) ;; *) ln -s "$path" /srv/deps ;; esac
done
"""


@pytest.fixture(scope="module")
def hosts() -> Iterator[SshHosts]:
    binds = [path.resolve() for path in (Path(sys.base_prefix), SITE)]
    with SshHosts("master", "node001", binds=binds) as made:
        for machine in made.machines.values():
            for path in binds:
                machine.remount(path, "ro")
            machine.write("/etc/pip.conf", NO_INDEX)
            machine.write("/etc/profile.d/deps.sh", "export PYTHONPATH=/srv/deps\n")
            machine.run("sh", "-c", DEPENDENCIES, "sh", str(SITE))
        yield made


def wheel(folder: Path, name: str, files: dict[str, bytes]) -> Path:
    """Return a wheel of version 9.9, written without a build tool."""
    path, info = folder / f"{name}-9.9-py3-none-any.whl", f"{name}-9.9.dist-info"
    files = files | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.9\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = ""
    for file_name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        record += f"{file_name},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    with zipfile.ZipFile(path, "w") as packed:
        for file_name, data in files.items():
            packed.writestr(file_name, data)
    return path


def wheel_of_the_project(folder: Path) -> Path:
    """Return a wheel of this source tree."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    entries = "".join(f"{name} = {place}\n" for name, place in project["scripts"].items())
    files = {"starmint-9.9.dist-info/entry_points.txt": f"[console_scripts]\n{entries}".encode()}
    for package in _PACKAGES:
        for file in (REPOSITORY / package).rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                files[str(file.relative_to(REPOSITORY))] = file.read_bytes()
    return wheel(folder, "starmint", files)


def test_python_packages_and_the_project_come_by_pip(hosts: SshHosts, tmp_path: Path) -> None:
    nodes = hosts.nodes()
    master, node = nodes
    tiny = wheel(tmp_path, "tiny", {"tiny.py": b"WORD = 'hello'\n"})
    env = "/home/ann/starmint-env"

    def use() -> None:
        master.add_user("ann")
        for path in (wheel_of_the_project(tmp_path), tiny):
            master.ssh.put(str(path), "/home/ann/")
        given = "/home/ann/starmint-9.9-py3-none-any.whl"
        ProjectEnv(source=given, python=str(PYTHON)).run(nodes, master, "ann", "bash", {})
        found = master.ssh.execute("su - ann -c 'command -v spearmint; spearmint --version'")
        assert found[0] == f"{env}/bin/spearmint"
        assert found[1].startswith("spearmint, version ")
        code = "import spearmint, starcluster; print(spearmint.__file__, starcluster.__file__)"
        where = master.ssh.execute(f"su - ann -c '{env}/bin/python -c \"{code}\"'")[0]
        assert [path.startswith(f"{env}/lib/") for path in where.split()] == [True, True]
        path = node.ssh.execute("bash -lc 'echo $PATH'")[0]
        assert f"{env}/bin" in path.split(":")
        plugin = PyPkgInstaller(packages=f"/home/ann/{tiny.name}", python=f"{env}/bin/python")
        plugin.run([master], master, "ann", "bash", {})
        code = "import tiny; print(tiny.WORD)"
        assert master.ssh.checked([f"{env}/bin/python", "-c", code]) == "hello\n"

    hosts.within(use)


def test_packages_come_by_apt_get_whose_lists_are_fetched_where_they_are_missing(
    hosts: SshHosts,
) -> None:
    nodes = hosts.nodes()

    def use() -> None:
        for node in nodes:
            node.ssh.checked(["sh", "-s"], stdin=REPOSITORY_OF_ONE)
        for _ in range(2):
            PackageInstaller(packages="tiny=1.*").run(nodes, nodes[0], "ann", "bash", {})
        for node in nodes:
            assert node.ssh.read_file("/usr/share/tiny/word") == "hello\n"
            status = node.ssh.execute("dpkg-query -W -f '${Status} ${Version}' tiny")
            assert status == ["install ok installed 1.2"]
        with pytest.raises(RemoteCommandFailed, match="Unable to locate package nothing"):
            nodes[0].package_install("nothing")

    hosts.within(use)


def test_modprobe_reads_what_nvidia_tune_writes(hosts: SshHosts) -> None:
    (node,) = hosts.nodes(["node001"])

    def use() -> None:
        node.ssh.write_file("/usr/local/sbin/update-initramfs", "#!/bin/sh\nexit 0\n")
        node.ssh.chmod(0o755, "/usr/local/sbin/update-initramfs")
        nvidia_driver.keep_check_off(node)
        lines = node.ssh.checked(["modprobe", "--showconfig"]).splitlines()
        # modprobe treats hyphens and underscores as equal.
        for module in ("nvidia", "nvidia_current"):
            assert f"options {module} NVreg_CheckPCIConfigSpace=0" in lines
        node.ssh.checked(["sh", "-c", nvidia_driver.NO_NOUVEAU])
        lines = node.ssh.checked(["modprobe", "--showconfig"]).splitlines()
        assert {"blacklist nouveau", "options nouveau modeset=0"} <= set(lines)
        found = nvidia_driver.parameter(node)  # the host does not have the module
        assert (found.modinfo.strip(), found.params) == ("", "")
        assert "nvidia-current" in found.configured

    hosts.within(use)


def test_exportfs_shares_what_the_set_up_and_plugins_ask_for(hosts: SshHosts) -> None:
    nodes = hosts.nodes()
    master, node = nodes
    wanted = steps.SetupOptions.of(TEMPLATE)

    def exported() -> set[tuple[str, str]]:
        rows = master.ssh.read_file("/var/lib/nfs/etab").splitlines()
        return {(row.split()[0], row.split()[1].partition("(")[0]) for row in rows}

    def use() -> None:
        master.ssh.makedirs("/etc/exports.d")
        master.add_to_etc_hosts(nodes)
        steps.share(master, [node], wanted)
        row = master.ssh.read_file("/var/lib/nfs/etab")
        for option in ("rw", "async", "no_root_squash", "no_subtree_check"):
            assert option in row.split("(")[1].split(",")
        master.export_fs_to_nodes(nodes, ["/srv"])
        assert exported() == {("/home", "node001"), ("/srv", "node001")}
        master.stop_exporting_fs_to_nodes([node])
        steps.share(master, [], wanted)
        assert exported() == set()
        master.ssh.write_file("/etc/exports.d/starcluster.exports", "/home 10.0.0.1(asinc)\n")
        with pytest.raises(RemoteCommandFailed, match="unknown keyword"):
            master.ssh.checked(["exportfs", "-ra"])
        steps.share(master, [node], wanted)

    hosts.within(use)


SECRETS = (
    "/etc/ssh/ssh_host_ed25519_key",
    "/root/.ssh/authorized_keys",
    "/root/.bash_history",
    "/home/bob/.aws/credentials",
    "/var/lib/cloud/instances/i-1/user-data.txt",
)
OF_THE_CLUSTER = {
    "/etc/hosts": "127.0.0.1 localhost\n"
    "# starcluster: nodes\n10.0.0.9 master\n# starcluster: end\n",
    "/etc/fstab": "/dev/sda1 / ext4\nmaster:/home /home nfs rw,hard,noatime,nofail 0 0\n",
}


def test_no_secret_is_on_the_disk_of_which_an_image_is_made(hosts: SshHosts) -> None:
    (node,) = hosts.nodes(["node001"])
    machine = hosts.machines["node001"]
    look = "cd /; stat -c '%n %a %u' . root etc home var var/lib; "
    look += "find etc/ssh root/.ssh home var/lib/cloud -exec stat -c '%n %a %u %F' {} +"

    def use() -> None:
        for path in SECRETS[2:]:
            machine.write(path, "a secret", 0o600)
        for path, text in OF_THE_CLUSTER.items():
            machine.write(path, text)
        before = node.ssh.execute(f"({look}) | sort")
        texts = {path: node.ssh.read_file(path) for path in (*SECRETS, *OF_THE_CLUSTER)}
        for _ in range(2):  # the second call finds an interrupted first one
            steps.hide_secrets(node, limit_s=600)
            assert not [path for path in SECRETS if node.ssh.path_exists(path)]
            assert node.ssh.read_file("/etc/hosts") == "127.0.0.1 localhost\n"
            assert node.ssh.read_file("/etc/fstab") == "/dev/sda1 / ext4\n"
        steps.restore_secrets(node)
        assert node.ssh.execute(f"({look}) | sort") == before
        assert ". 755 0" in before
        assert {path: node.ssh.read_file(path) for path in texts} == texts
        assert not node.ssh.path_exists("/run/starcluster-image")
        steps.hide_secrets(node, limit_s=5)  # a busy node needs a second or two
        until(lambda: not node.ssh.path_exists("/run/starcluster-image"))  # without a command
        assert {path: node.ssh.read_file(path) for path in texts} == texts
        machine.write("/var/spool/gridengine/.starcluster-made", "")
        with pytest.raises(RemoteCommandFailed, match="'starcluster start -o'"):
            steps.hide_secrets(node, limit_s=600)

    hosts.within(use)
