"""File systems of fresh systems for nodes: Debian 12 and 13 by debootstrap, and a broken Ubuntu.

A root has what a stock image has, and a mirror of the packages that the set-up installs: nodes have
no other network. Roots are cached, under ``$XDG_CACHE_HOME`` or /var/cache.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.testbed.image import STAND_INS, cache_folder, forget_old

DEBIAN_12, DEBIAN_13, UBUNTU = "bookworm", "trixie", "ubuntu"
MIRROR = "http://deb.debian.org/debian"
# Cloud images have these and more.
_STOCK = ("iproute2", "openssh-server", "procps", "python3")
# The set-up installs these.
PACKAGES = (
    *("gridengine-client", "gridengine-exec", "gridengine-master"),
    *("netbase", "nfs-common", "nfs-kernel-server", "nullmailer"),
)
_BUILD = Path(__file__).parent / "root-build.sh"
_BREAK = Path(__file__).parent / "root-break.sh"
_QUEUES = Path(__file__).parent / "root-queues.sh"
# Trials need python3's libraries; nodes of a cluster sshd and NFS.
_QUEUE_PACKAGES = (
    *("condor", "munge", "slurm-wlm", "slurmdbd", "mariadb-server"),
    *(*_STOCK, "nfs-common", "nfs-kernel-server"),
)


def root(name: str) -> Path:
    """Return the file system of a fresh system; build it if it is missing.

    Raises:
        RuntimeError: The build failed; the message has its last lines.
    """
    if name == UBUNTU:
        return _cached(name, _BREAK, str(root(DEBIAN_12)))
    return _cached(name, _BUILD, MIRROR, str(STAND_INS), ",".join(_STOCK), *PACKAGES)


def queues_root() -> Path:
    """Return the file system of a Debian 13 with HTCondor and Slurm; build it if it is missing."""
    return _cached("queues", _QUEUES, MIRROR, str(STAND_INS), *_QUEUE_PACKAGES)


def debian_packages() -> Path:
    """Return a directory with Grid Engine's packages of Debian 12, as apt-get downloaded them."""
    return root(DEBIAN_12) / "srv" / "mirror"


def _cached(name: str, script: Path, *arguments: str) -> Path:
    """Return what ``script NAME DIRECTORY ARGUMENT...`` writes to the directory, built once."""
    stand_ins = b"".join(path.read_bytes() for path in sorted(STAND_INS.iterdir()))
    words = " ".join((name, *arguments)).encode() + script.read_bytes() + stand_ins
    cache = cache_folder()
    done = cache / f"{name}-{hashlib.sha256(words).hexdigest()[:16]}"
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            forget_old(cache)
            _build(done, script, *arguments)
        os.utime(done)
    return done


def _build(done: Path, script: Path, *arguments: str) -> None:
    for left in done.parent.glob(f".{done.name}-*"):  # of a build that was killed
        shutil.rmtree(left, ignore_errors=True)
    new = Path(tempfile.mkdtemp(prefix=f".{done.name}-", dir=done.parent))
    name = done.name.partition("-")[0]
    argv = ["unshare", "--mount", "bash", str(script), name, str(new), *arguments]
    ran = subprocess.run(
        argv,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1000,
    )
    if ran.returncode:
        shutil.rmtree(new, ignore_errors=True)
        tail = "\n".join(ran.stdout.splitlines()[-20:])
        raise RuntimeError(f"cannot build the root {name}:\n{tail}")
    new.chmod(0o755)
    new.replace(done)
