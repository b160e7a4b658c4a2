"""All sections of the config file and their keys."""

from __future__ import annotations

from collections.abc import Mapping

from starcluster.config.account import AccountKeys
from starcluster.config.keys import ConfigKey, keys_of
from starcluster.config.parsers import text
from starcluster.config.sections import (
    AwsSettings,
    GlobalSettings,
    Key,
    Permission,
    Plugin,
)
from starcluster.config.template import Template
from starcluster.config.volume import Volume

_INCLUDE = ConfigKey(
    name="include",
    parse=text,
    help="Read these files too; separate by commas. A relative path starts at the directory "
    "of the file that names it.",
    example="~/.starcluster/plugins.config, ~/.starcluster/volumes.config",
    default="",
)
_EXTENDS = ConfigKey(
    name="extends",
    parse=text,
    help="Inherit the keys of this template that are not set here.",
    example="gpu",
    default="",
)
GLOBAL: Mapping[str, ConfigKey] = {**keys_of(GlobalSettings), "include": _INCLUDE}
AWS: Mapping[str, ConfigKey] = keys_of(AwsSettings)
KEY: Mapping[str, ConfigKey] = keys_of(Key)
PLUGIN: Mapping[str, ConfigKey] = keys_of(Plugin)
_ACCOUNT = keys_of(AccountKeys)  # rare, so the last ones of their section
CLUSTER: Mapping[str, ConfigKey] = {
    "extends": _EXTENDS,
    **{name: key for name, key in keys_of(Template).items() if name not in _ACCOUNT},
    **_ACCOUNT,
}
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
"""Keys of the original that have no effect here; they are ignored."""


def start_options() -> tuple[ConfigKey, ...]:
    """Return the keys that have an option of ``starcluster start``."""
    return tuple(key for key in (*CLUSTER.values(), *KEY.values()) if key.option)
