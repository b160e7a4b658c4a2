"""Read, check and edit the config file."""

from starcluster.config.config import Config, default_path, load
from starcluster.config.keys import ConfigKey
from starcluster.config.parsers import NodeType
from starcluster.config.sections import AwsSettings, GlobalSettings, Key, Permission, Plugin
from starcluster.config.template import Template
from starcluster.config.volume import Kind, Volume, disks, file_systems, with_devices

__all__ = [
    "AwsSettings",
    "Config",
    "ConfigKey",
    "GlobalSettings",
    "Key",
    "Kind",
    "NodeType",
    "Permission",
    "Plugin",
    "Template",
    "Volume",
    "default_path",
    "disks",
    "file_systems",
    "load",
    "with_devices",
]
