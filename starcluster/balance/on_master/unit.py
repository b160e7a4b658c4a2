"""The systemd unit of the balancer on the master, and where its files are."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

UNIT = "starcluster-balancer.service"
UNIT_FILE = f"/etc/systemd/system/{UNIT}"
FOLDER = "/opt/starcluster-balancer"
"""Directory of the program and its config; only root can read it."""
CURRENT = f"{FOLDER}/current"
PROGRAM = f"{CURRENT}/starcluster"
CONFIG = f"{CURRENT}/config"
KEY = "/root/.ssh/id_ed25519"
"""Private key of root on the master, which can log in to all nodes."""
_STATE = "starcluster/home"

_TEXT = """[Unit]
Description=Balancer of the StarCluster cluster {cluster}
Documentation=man:systemd.service(5)
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
Type=exec
User=root
Environment=HOME=/var/lib/{state} PYTHONUNBUFFERED=1
ExecStart={command}
Restart=always
RestartSec=15
TimeoutStopSec=30
UMask=0077
StateDirectory={state}
StateDirectoryMode=0700
# It works on all nodes by SSH, also on this one: here it only reads its key and its config.
CapabilityBoundingSet=
AmbientCapabilities=
NoNewPrivileges=yes
LockPersonality=yes
PrivateDevices=yes
PrivateTmp=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHome=read-only
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectSystem=strict
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
"""


def unit_text(cluster: str, options: Sequence[str]) -> str:
    """Return the unit that runs ``loadbalance`` with these options."""
    words = [PROGRAM, "-c", CONFIG, "loadbalance", *options, cluster]
    command = shlex.join(words).replace("%", "%%").replace("$", "$$")
    return _TEXT.format(cluster=cluster, command=command, state=_STATE)
