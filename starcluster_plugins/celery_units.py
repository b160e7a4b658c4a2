"""Texts of the broker and the workers: Redis's configuration, systemd units, and their secrets."""

from __future__ import annotations

import hashlib
import shlex
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field

from starcluster.utils import generate_passwd

PORT = 6379
MARK = "# Written by starcluster_plugins.celery_workers, which replaces this file."
_SECRET_LENGTH = 40

_CONF = """\
bind {address}
port {port}
protected-mode yes
save ""
appendonly no
# Only the hash of the password, and no command that changes the server or writes files.
user default reset on #{hash} ~* &* +@all -@admin -@dangerous +info +keys
"""

_BROKER = """\
[Unit]
Description=Broker of the workers of spearmint (Redis)
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
Type=exec
User=redis
# systemd opens the file as root; Redis cannot.
StandardInput=file:{conf}
ExecStart={program} -
Restart=always
RestartSec=2
CapabilityBoundingSet=
NoNewPrivileges=yes
PrivateDevices=yes
PrivateTmp=yes
ProtectHome=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectSystem=strict
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictSUIDSGID=yes
UMask=0077

[Install]
WantedBy=multi-user.target
"""

_WORKER = """\
[Unit]
Description=Worker of spearmint --driver=CELERY
Wants=network-online.target
After=network-online.target remote-fs.target
RequiresMountsFor={home}
StartLimitIntervalSec=0

[Service]
Type=exec
User={user}
WorkingDirectory={home}
# Trials have the environment of a login.
ExecStart={command}
Restart=always
RestartSec=5
# SIGTERM lets trials end. Those that still run after this time are killed.
KillMode=mixed
TimeoutStopSec={drain_s}
# A trial that exceeds the memory must not end the others.
OOMPolicy=continue
TasksMax=infinity
LimitMEMLOCK=infinity

[Install]
WantedBy=multi-user.target
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """The password of the broker, and the key that signs messages: letters and digits."""

    password: str = field(repr=False)
    key: str = field(repr=False)


def secrets_of(text: str) -> Secrets:
    """Return the secrets in a file of :func:`broker_file`; new ones if it is empty or damaged."""
    try:
        found = tomllib.loads(text)
        password = str(found["url"]).partition("://:")[2].partition("@")[0]
        if len(password) == len(found["key"]) == _SECRET_LENGTH:
            return Secrets(password=password, key=str(found["key"]))
    except (tomllib.TOMLDecodeError, KeyError, TypeError):
        pass
    return Secrets(password=generate_passwd(_SECRET_LENGTH), key=generate_passwd(_SECRET_LENGTH))


def broker_file(secrets: Secrets, address: str) -> str:
    """Return the file by which ``spearmint`` finds the broker at ``address``."""
    url = f"redis://:{secrets.password}@{address}:{PORT}/0"
    return f'{MARK}\nurl = "{url}"\nkey = "{secrets.key}"\n'


def redis_conf(secrets: Secrets, address: str) -> str:
    """Return Redis's configuration: it listens on ``address`` and stores nothing on disk."""
    digest = hashlib.sha256(secrets.password.encode()).hexdigest()
    return _CONF.format(address=address, port=PORT, hash=digest)


def broker_unit(program: str, conf: str) -> str:
    """Return the unit of Redis, which reads its configuration from standard input."""
    return _BROKER.format(program=program, conf=conf)


def worker_unit(argv: Sequence[str], *, user: str, home: str, drain_s: int) -> str:
    """Return the unit that runs ``argv`` in a login shell of the user.

    Args:
        drain_s: Seconds that a stop waits for trials.
    """
    words = ["/bin/bash", "-l", "-c", f"exec {shlex.join(argv)}"]
    command = shlex.join(words).replace("%", "%%").replace("$", "$$")
    return _WORKER.format(command=command, user=user, home=home, drain_s=drain_s)
