"""A live cluster without an AWS account: ``make cluster-demo``, as root on Linux."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.testbed.cloud import IMAGE, REPOSITORY, Cloud

CONFIG = f"""\
[global]
default_template = small

[cluster small]
keyname = demo
cluster_size = 3
node_instance_type = g4dn.xlarge
node_image_id = {IMAGE}

[plugin nvidia_tune]
setup_class = starcluster_plugins.nvidia_tune.NvidiaTune
"""
_SHELL = "env 'PS1=cluster-demo$ ' bash --norc -i"  # because bash unsets PS1 in scripts
HELP = """
Three hosts on this machine act as EC2 instances; nothing leaves this machine or costs money.
Try:
  starcluster listclusters
  starcluster runplugin nvidia_tune
  starcluster put -u sgeadmin gpucluster branin .
  starcluster sshmaster -u sgeadmin gpucluster \\
    'spearmint --driver=SGE --max-finished-jobs=8 branin/config.pb'
  starcluster addnode gpucluster
  starcluster stop gpucluster; starcluster start -x gpucluster
  starcluster terminate gpucluster
To remove the cluster, leave this shell: exit
"""


def main() -> int:
    """Start the cluster and open a shell; remove the cluster when the shell ends."""
    with Cloud() as cloud:
        folder = cloud.home / ".starcluster"
        folder.mkdir()
        (folder / "config").write_text(CONFIG)
        (folder / "config").chmod(0o600)
        (cloud.home / "branin").symlink_to(REPOSITORY / "examples" / "branin")
        command = cloud.home / "bin" / "starcluster"  # from this source tree, installed or not
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m starcluster "$@"\n')
        command.chmod(0o755)
        environment = cloud.environment()
        path = [str(command.parent), str(Path(sys.executable).parent), environment.get("PATH", "")]
        environment["PATH"] = ":".join(path)
        begin = "starcluster createkey demo -a && starcluster start gpucluster"
        shell = f"cd && {begin} && cat <<'END' && exec {_SHELL}\n{HELP}END\n"
        argv = cloud.enter(["bash", "-c", shell])
        return subprocess.run(argv, check=False, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
