"""The file system of the nodes: an overlay of this machine's own and Grid Engine's packages.

apt-get installs the packages into a separate layer, so /etc, daemons and package database of this
machine do not change. The layer is cached for the next run. If the packages crash, as Ubuntu's do,
those of Debian 12 replace them.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import sge_jobs
from sge_jobs import DEBIAN_PACKAGES, HWLOC_PACKAGES
from starcluster.setup.packages import fetch

STAND_INS = Path(__file__).parent / "stand_ins"

# Grid Engine depends on a mail server; nullmailer is the smallest one. It never starts.
PACKAGES = (
    "nullmailer",
    "gridengine-master",
    "gridengine-exec",
    "gridengine-client",
    "openssh-server",
    "kmod",
    "nfs-kernel-server",
    "python3-venv",
    "stunnel4",
    "python3-bcrypt",
    "python3-cryptography",
    "python3-nacl",
    "python3-psutil",
    "redis-server",
    "tcsh",
)
_KEEP_DAYS = 7
_CRASHES = 9  # exit status of _BUILD: replace Grid Engine's packages
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

# Runs in a separate mount namespace, so no mount remains after it.
_BUILD = r"""
set -eu
layer=$1 base=$2 stand_ins=$3 sge_jobs=$4 debian=$5; shift 5
mkdir -p "$layer/upper" "$layer/work" "$layer/root"
mount -t overlay layer -o "lowerdir=$base,upperdir=$layer/upper,workdir=$layer/work" "$layer/root"
mount -t proc proc "$layer/root/proc"
printf '#!/bin/sh\nexit 101\n' > "$layer/root/usr/sbin/policy-rc.d"  # start no daemon
chmod 755 "$layer/root/usr/sbin/policy-rc.d"
for part in common client exec master; do
  echo "gridengine-$part shared/gridengineconfig boolean false"
done | chroot "$layer/root" debconf-set-selections
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
chroot "$layer/root" apt-get install -q -y --no-install-recommends "$@" \
  || { chroot "$layer/root" apt-get update -q
       chroot "$layer/root" apt-get install -q -y --no-install-recommends "$@"; }
hostname localhost  # Grid Engine resolves it
mkdir "$layer/root/probe"
cp -r "$sge_jobs" "$layer/root/probe/sge_jobs"
crash=$(chroot "$layer/root" env PYTHONPATH=/probe python3 -c '
from sge_jobs.node.spooldefaults import spooldefaults_crash
print(spooldefaults_crash())')
if [ -n "$crash" ]; then
  ls "$debian"/*.deb >/dev/null || exit 9
  cp "$debian"/*.deb "$layer/root/probe"
  has=$(chroot "$layer/root" dpkg-query -W -f '${Version}' libhwloc15)
  ! dpkg --compare-versions "$has" ge 2.7.1 || rm -f "$layer"/root/probe/libhwloc15_*
  chroot "$layer/root" sh -c 'apt-get install -q -y --allow-downgrades /probe/*.deb'
fi
rm -r "$layer/root/probe"
chroot "$layer/root" apt-get clean
rm -rf "$layer/upper/var/lib/apt" "$layer/upper/var/cache" "$layer/upper/usr/share/man"
rm -f "$layer"/upper/etc/ssh/ssh_host_*  # each node has its own
cd "$layer/root/usr/sbin"  # stand-ins, because this kernel has no NFS; exportfs does not need it
install -m 755 "$stand_ins/mount.nfs" mount.nfs
install -m 755 "$stand_ins/nfs-kernel-server" ../../etc/init.d/nfs-kernel-server
"""


def layer(base: Path = Path("/"), packages: Sequence[str] = PACKAGES, debian: str = "") -> Path:
    """Return the layer that every node mounts over ``base``; build it if it is missing.

    Args:
        debian: Directory or URL of Debian 12's Grid Engine packages, for a base whose own crash.

    Raises:
        RuntimeError: apt-get failed; the message has its last lines.
    """
    status = (base / "var/lib/dpkg/status").read_bytes()
    stand_ins = b"".join(path.read_bytes() for path in sorted(STAND_INS.iterdir()))
    words = " ".join((*packages, _BUILD)).encode()
    key = hashlib.sha256(words + stand_ins + status).hexdigest()[:16]
    cache = cache_folder()
    with _locked(cache):
        if not (cache / key / "done").exists():
            forget_old(cache)
            _build(cache / key, base, packages, debian)
        os.utime(cache / key)
    return cache / key / "upper"


def cache_folder() -> Path:
    """Return the directory of cached file systems; create it."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or "/var/cache") / "starmint-testbed"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _build(target: Path, base: Path, packages: Sequence[str], debian: str) -> None:
    with tempfile.TemporaryDirectory(prefix="debian-12-") as folder:
        done = _try(target, base, packages, folder)
        if done.returncode == _CRASHES:
            for package in (*DEBIAN_PACKAGES, *HWLOC_PACKAGES):
                if package.architecture in ("all", _ARCHITECTURES[platform.machine()]):
                    (Path(folder) / package.file).write_bytes(fetch(package, debian))
            done = _try(target, base, packages, folder)
    if done.returncode:
        tail = "\n".join(done.stdout.splitlines()[-20:])
        raise RuntimeError(f"cannot install the packages of the nodes:\n{tail}")
    (target / "done").touch()


def _try(
    target: Path, base: Path, packages: Sequence[str], debian: str
) -> subprocess.CompletedProcess[str]:
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    argv = ["unshare", "--mount", "--uts", "bash", "-c", _BUILD, "bash", str(target), str(base)]
    argv += [str(STAND_INS), str(Path(sge_jobs.__file__).parent), debian, *packages]
    return subprocess.run(
        argv,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1000,
    )


@contextlib.contextmanager
def _locked(cache: Path) -> Iterator[None]:
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def forget_old(cache: Path) -> None:
    """Delete file systems that were not used for a week."""
    for path in cache.iterdir():
        if path.is_dir() and time.time() - path.stat().st_mtime > _KEEP_DAYS * 86400:
            shutil.rmtree(path, ignore_errors=True)
