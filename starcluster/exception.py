"""Names of errors that plugins written for the original import; ours are in ``errors``."""

from starcluster.errors import PluginError, RemoteCommandFailed, StarClusterError
from starcluster.errors import SshError as SSHError

BaseException = StarClusterError

__all__ = ["BaseException", "PluginError", "RemoteCommandFailed", "SSHError"]
