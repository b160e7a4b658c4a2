"""Constants that plugins for the original import: ``from starcluster import static``."""

from __future__ import annotations

import os
import pwd
import tempfile
from pathlib import Path

VERSION = "0.95.6"
"""The version of the original whose plugin API this package has."""
PID = os.getpid()
TMP_DIR = tempfile.gettempdir()
CURRENT_USER = pwd.getpwuid(os.getuid()).pw_name

STARCLUSTER_CFG_DIR = str(Path("~/.starcluster").expanduser())
STARCLUSTER_CFG_FILE = f"{STARCLUSTER_CFG_DIR}/config"
STARCLUSTER_PLUGIN_DIR = f"{STARCLUSTER_CFG_DIR}/plugins"
STARCLUSTER_LOG_DIR = f"{STARCLUSTER_CFG_DIR}/logs"

SECURITY_GROUP_PREFIX = "@sc-"
SECURITY_GROUP_TEMPLATE = f"{SECURITY_GROUP_PREFIX}%s"
DEFAULT_SSH_PORT = 22
WORLD_CIDRIP = "0.0.0.0/0"
PROTOCOLS = ["tcp", "udp", "icmp"]
INSTANCE_METADATA_URI = "http://169.254.169.254/latest"
INSTANCE_STATES = ["pending", "running", "shutting-down", "terminated", "stopping", "stopped"]
VOLUME_STATUS = ["creating", "available", "in-use", "deleting", "deleted", "error"]
VOLUME_ATTACH_STATUS = ["attaching", "attached", "detaching", "detached"]
AVAILABLE_SHELLS = dict.fromkeys(("bash", "zsh", "csh", "ksh", "tcsh"), True)
