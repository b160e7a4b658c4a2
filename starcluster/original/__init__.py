"""Lists of what StarCluster 0.95 has, and what replaces each part that is not here."""

from starcluster.original.api import API, Api
from starcluster.original.commands import COMMANDS, Command, Option, command_of
from starcluster.original.keys import KEYS, Keys
from starcluster.original.plugins import PLUGINS, replacement_of

__all__ = [
    "API",
    "COMMANDS",
    "KEYS",
    "PLUGINS",
    "Api",
    "Command",
    "Keys",
    "Option",
    "command_of",
    "replacement_of",
]
