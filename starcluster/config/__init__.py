"""Read, check and edit the config file."""

from starcluster.config.config import Config, default_path, load
from starcluster.config.devices import with_devices
from starcluster.config.keys import ConfigKey
from starcluster.config.parsers import NodeType
from starcluster.config.sections import AwsSettings, GlobalSettings, Key, Permission, Plugin, Volume
from starcluster.config.template import Template

__all__ = [
    "AwsSettings",
    "Config",
    "ConfigKey",
    "GlobalSettings",
    "Key",
    "NodeType",
    "Permission",
    "Plugin",
    "Template",
    "Volume",
    "default_path",
    "load",
    "with_devices",
]
