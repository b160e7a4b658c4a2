"""Install the package sge_jobs on the disk of every node, so jobs start even if NFS hangs."""

from __future__ import annotations

import functools
import gzip
import hashlib
import io
import tarfile
from pathlib import Path

import sge_jobs
from starcluster.node.node import Node

TOOLS = "/opt/starmint"
"""Directory of the package on nodes; only root can write to it."""

_COMMAND = f"""#!/usr/bin/python3
import sys
sys.path.insert(0, "{TOOLS}")
from sge_jobs.cli import main
sys.exit(main())
"""
_UNPACK = """
set -eu
mkdir -p "$1"
cd "$1"
rm -rf .new
mkdir .new
tar -xzf - -C .new
rm -rf .old
[ ! -e sge_jobs ] || mv sge_jobs .old
mv .new/sge_jobs sge_jobs
install -m 755 .new/sge-jobs /usr/local/bin/sge-jobs
rm -rf .new .old
printf '%s\\n' "$2" > digest
"""


@functools.cache
def archive() -> tuple[bytes, str]:
    """Return sge_jobs as a reproducible compressed tar archive, and its digest."""
    root = Path(sge_jobs.__file__).parent
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for path in sorted(root.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                executable = bool(path.stat().st_mode & 0o100)
                _add(tar, f"sge_jobs/{path.relative_to(root)}", path.read_bytes(), executable)
        _add(tar, "sge-jobs", _COMMAND.encode(), True)
    packed = gzip.compress(plain.getvalue(), mtime=0)
    return packed, hashlib.sha256(packed).hexdigest()


def install(node: Node) -> None:
    """Install sge_jobs and the command ``sge-jobs`` on a node, unless this version is there."""
    packed, digest = archive()
    if node.ssh.run(["cat", f"{TOOLS}/digest"]).stdout.strip() != digest:
        argv = ["sh", "-c", _UNPACK, "sh", TOOLS, digest]
        node.ssh.checked(argv, stdin=packed, timeout_s=120)


def _add(tar: tarfile.TarFile, name: str, data: bytes, executable: bool) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    member.mode = 0o755 if executable else 0o644
    tar.addfile(member, io.BytesIO(data))
