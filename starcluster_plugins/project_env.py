"""Install this project on the cluster.

``setup_class = starcluster_plugins.project_env.ProjectEnv`` creates a Python environment on the
shared home. ``spearmint --driver=SGE config.pb`` then works on the master, and its trials find the
same packages on every node.
"""

from __future__ import annotations

import io
import re
import shlex
import tarfile
from pathlib import Path
from typing import Any

import starcluster
from starcluster.clustersetup import ClusterSetup, for_each
from starcluster.errors import ConfigError, NodeError
from starcluster.logger import log
from starcluster.node import Node
from starcluster_plugins import nvidia_driver

_CUDA_13_DRIVER = 580
_PROFILE = "/etc/profile.d/starmint-env.sh"
_PACKAGES = ("starmint", "starcluster", "starcluster_plugins", "spearmint", "sge_jobs", "pycuda_nn")
_FILES = ("pyproject.toml", "setup.py", "README.rst", "LICENSE")
_INSTALL_S = 3600.0


class ProjectEnv(ClusterSetup):
    """Install this project into an environment on the shared home.

    Args:
        source: Requirement for pip, such as ``starmint==1.0``; empty for the source tree that this
            command runs from.
        extras: Extras separated by commas; empty for ``gpu`` or ``gpu-cu12``, by the driver.
        python: Interpreter of the nodes, Python 3.11 or later.
    """

    def __init__(self, source: str = "", extras: str = "", python: str = "python3") -> None:
        super().__init__()
        self._source, self._python = source, python
        self._extras = extras.replace(" ", "")
        if not source and not (_tree() / "pyproject.toml").is_file():
            raise ConfigError(
                "project_env: this command does not run from a source tree",
                "Set what to install: source = starmint",
            )

    def run(self, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any) -> None:
        """Install on the master, and add the environment to PATH on every node."""
        home = master.getpwnam(user).pw_dir
        venv = f"{home}/starmint-env"
        self._require_python(master)
        what = self._requirement(nodes, master, user, home)
        log.info("Installing %s in %s", what, venv)
        for argv in (
            [self._python, "-m", "venv", venv],
            [f"{venv}/bin/pip", "install", "--quiet", "--disable-pip-version-check", what],
        ):
            master.ssh.checked(_as(user, argv), timeout_s=_INSTALL_S)
        for_each(nodes, lambda node: self._on_path(node, venv))
        master.ssh.checked(_as(user, [f"{venv}/bin/spearmint", "--version"]))

    def on_add_node(
        self, node: Any, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any
    ) -> None:
        """Add the environment to PATH on the new node."""
        self._on_path(node, f"{master.getpwnam(user).pw_dir}/starmint-env")

    def _require_python(self, master: Node) -> None:
        argv = [self._python, "-c", "import sys; print(sys.version_info >= (3, 11))"]
        if master.ssh.run(argv).stdout.strip() != "True":
            raise NodeError(
                f"{self._python} is not Python 3.11 or later",
                "Use an image of Ubuntu 24.04 or Debian 12, or another Python: python = python3.12",
                alias=master.alias,
            )
        if master.ssh.run([self._python, "-m", "ensurepip", "--version"]).status:
            master.package_install("python3-venv")

    def _requirement(self, nodes: list[Node], master: Node, user: str, home: str) -> str:
        source = self._source or self._upload(master, user, home)
        extras = self._extras or _extras_for(_drivers(nodes))
        return f"{source}[{extras}]" if extras and "[" not in source else source

    def _upload(self, master: Node, user: str, home: str) -> str:
        target = f"{home}/starmint-source"
        script = 'rm -rf "$1" && mkdir -p "$1" && tar -xzf - -C "$1" && chown -R "$2:" "$1"'
        argv = ["sh", "-c", script, "sh", target, user]
        master.ssh.checked(argv, stdin=_archive(_tree()), timeout_s=300)
        return target

    def _on_path(self, node: Node, venv: str) -> None:
        line = f"case :$PATH: in *:{venv}/bin:*) ;; *) PATH={venv}/bin:$PATH ;; esac\n"
        node.ssh.write_file(_PROFILE, line)


def _extras_for(drivers: list[str]) -> str:
    """Return the extra for the oldest of the drivers; empty without GPUs."""
    majors = [int(match[0]) for driver in drivers if (match := re.match(r"\d+", driver))]
    if not majors:
        return ""
    return "gpu" if min(majors) >= _CUDA_13_DRIVER else "gpu-cu12"


def _drivers(nodes: list[Node]) -> list[str]:
    found: list[str] = []
    for node in nodes:
        found += [gpu.driver for gpu in nvidia_driver.gpus(node)[:1]]
    return found


def _tree() -> Path:
    return Path(starcluster.__file__).resolve().parents[1]


def _archive(tree: Path) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name in (*_FILES, *_PACKAGES):
            path = tree / name
            if path.exists():
                tar.add(path, arcname=name, filter=_without_caches)
    return packed.getvalue()


def _without_caches(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "__pycache__" in member.name else member


def _as(user: str, argv: list[str]) -> list[str]:
    return ["su", "-", user, "-c", shlex.join(argv)]
