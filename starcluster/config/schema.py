"""All sections of the config file and their keys, as the dataclasses declare them."""

from __future__ import annotations

from collections.abc import Mapping

from starcluster.config.keys import ConfigKey, keys_of
from starcluster.config.parsers import text
from starcluster.config.sections import (
    AwsSettings,
    GlobalSettings,
    Key,
    Permission,
    Plugin,
    Volume,
)
from starcluster.config.template import Template

_INCLUDE = ConfigKey(
    name="include",
    parse=text,
    help="More files, separated by commas; a relative one is beside the file that names it.",
    example="~/.starcluster/plugins.config, ~/.starcluster/volumes.config",
    default="",
)
_EXTENDS = ConfigKey(
    name="extends",
    parse=text,
    help="Another template, whose keys apply where this one has none of its own.",
    example="gpu",
    default="",
)
GLOBAL: Mapping[str, ConfigKey] = {**keys_of(GlobalSettings), "include": _INCLUDE}
AWS: Mapping[str, ConfigKey] = keys_of(AwsSettings)
KEY: Mapping[str, ConfigKey] = keys_of(Key)
PLUGIN: Mapping[str, ConfigKey] = keys_of(Plugin)
CLUSTER: Mapping[str, ConfigKey] = {"extends": _EXTENDS, **keys_of(Template)}
SECTIONS: Mapping[str, Mapping[str, ConfigKey]] = {
    "global": GLOBAL,
    "aws info": AWS,
    "key": KEY,
    "cluster": CLUSTER,
    "volume": keys_of(Volume),
    "permission": keys_of(Permission),
    "plugin": PLUGIN,
}
WITHOUT_NAME = ("global", "aws info")
OBSOLETE = frozenset({"aws_s3_host", "aws_s3_path", "ec2_cert", "ec2_private_key", "web_browser"})
"""Keys of the original that nothing here needs: ignored."""


def start_options() -> tuple[ConfigKey, ...]:
    """Return the keys that options of ``starcluster start`` override."""
    return tuple(key for key in (*CLUSTER.values(), *KEY.values()) if key.option)
