"""Error names that plugins for the original import; the classes are in ``errors``."""

from starcluster.errors import PluginError, RemoteCommandFailed, StarClusterError
from starcluster.errors import SshError as SSHError

BaseException = StarClusterError

__all__ = ["BaseException", "PluginError", "RemoteCommandFailed", "SSHError"]
