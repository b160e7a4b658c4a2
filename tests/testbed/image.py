"""The file system of the nodes: an overlay of this machine's own and Grid Engine's packages.

apt-get installs the packages into a separate layer, so /etc, daemons and package database of this
machine do not change. The layer is cached for the next run.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

CACHE = Path("/var/cache/starmint-testbed")
_STAND_INS = Path(__file__).parent / "stand_ins"

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
)
_KEEP_DAYS = 7

# Runs in a separate mount namespace, so no mount remains after it.
_BUILD = r"""
set -eu
layer=$1 stand_ins=$2; shift 2
mkdir -p "$layer/upper" "$layer/work" "$layer/root"
mount -t overlay layer -o "lowerdir=/,upperdir=$layer/upper,workdir=$layer/work" "$layer/root"
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
chroot "$layer/root" apt-get clean
rm -rf "$layer/upper/var/lib/apt" "$layer/upper/var/cache" "$layer/upper/usr/share/man"
rm -f "$layer"/upper/etc/ssh/ssh_host_*  # each node has its own
cd "$layer/root/usr/sbin"  # stand-ins, because this kernel has no NFS; exportfs does not need it
install -m 755 "$stand_ins/mount.nfs" mount.nfs
install -m 755 "$stand_ins/nfs-kernel-server" ../../etc/init.d/nfs-kernel-server
"""


def layer() -> Path:
    """Return the layer that every node mounts over ``/``; build it if it is missing.

    Raises:
        RuntimeError: apt-get failed; the message has its last lines.
    """
    status = Path("/var/lib/dpkg/status").read_bytes()
    stand_ins = b"".join(path.read_bytes() for path in sorted(_STAND_INS.iterdir()))
    words = " ".join((*PACKAGES, _BUILD)).encode()
    key = hashlib.sha256(words + stand_ins + status).hexdigest()[:16]
    done = CACHE / key / "upper"
    with _locked():
        if not (CACHE / key / "done").exists():
            _forget_old()
            _build(CACHE / key)
        os.utime(CACHE / key)
    return done


def _build(target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    argv = ["unshare", "--mount", "bash", "-c", _BUILD, "bash", str(target)]
    argv += [str(_STAND_INS), *PACKAGES]
    done = subprocess.run(
        argv,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    if done.returncode:
        tail = "\n".join(done.stdout.splitlines()[-20:])
        raise RuntimeError(f"cannot install the packages of the nodes:\n{tail}")
    (target / "done").touch()


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _forget_old() -> None:
    for path in CACHE.iterdir():
        if path.is_dir() and time.time() - path.stat().st_mtime > _KEEP_DAYS * 86400:
            shutil.rmtree(path, ignore_errors=True)
