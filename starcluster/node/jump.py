"""Reach nodes through a jump host: the ssh of this machine forwards each connection (``ssh -W``).

It verifies the host key of the jump host with the user's known_hosts, and reads the user's ssh
config, keys and agent. The node's own host key is verified inside of the forwarded connection.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from starcluster.node.tunnel import Forwarding, last_line

_CONNECT_S = 15
_ALIVE_S = 5
_CHECK_S = 60
_FAILED = 255  # of ssh itself; any other status is that of the jump host's shell


def by_jump_host(jump: str, key: Path, host: str, port: int = 22) -> Forwarding:
    """Return how to reach a node through a jump host.

    Args:
        jump: The jump host, ``user@host`` or ``user@host:port``.
        key: A private key to try in addition to those of the user's ssh config.
    """
    return Forwarding(
        argv=(*_options(key), "-W", f"{host}:{port}", "--", f"ssh://{jump}"),
        through="the jump host",
        fix="Check that the jump host reaches this address, and ssh_from in the template.",
    )


def _options(key: Path) -> list[str]:
    options = {
        "BatchMode": "yes",  # no questions: nodes are connected in parallel
        "StrictHostKeyChecking": "yes",
        "ConnectTimeout": str(_CONNECT_S),
        "ServerAliveInterval": str(_ALIVE_S),
        "ServerAliveCountMax": "3",
    }
    argv = ["ssh", "-T", "-i", str(key)]
    for name, value in options.items():
        argv += ["-o", f"{name}={value}"]
    return argv


def problem_of(jump: str, key: Path) -> str:
    """Log in to a jump host; return why this failed, or an empty text."""
    argv = [*_options(key), "--", f"ssh://{jump}", "exit"]
    try:
        done = subprocess.run(
            argv,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_CHECK_S,
        )
    except FileNotFoundError:
        return "ssh is not installed on this machine; install the OpenSSH client"
    except subprocess.TimeoutExpired:
        return f"cannot log in to {jump} within {_CHECK_S} s"
    if done.returncode != _FAILED:
        return ""
    return f"cannot log in to {jump}: {last_line(done.stderr)}. Log in once by hand: ssh {jump}"
