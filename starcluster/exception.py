"""Error names that plugins for the original import; the classes are in ``errors``.

Several names of the original are one class here: ``except exception.AMIDoesNotExist`` catches each
resource that AWS does not have.
"""

from starcluster.errors import (
    AlreadyThere,
    AwsError,
    ClusterError,
    ConfigError,
    ConnectionLost,
    InputError,
    NodeError,
    NotFound,
    PluginError,
    RemoteCommandFailed,
    SetupError,
    SshError,
    StarClusterError,
)

BaseException = StarClusterError

SSHError = SSHConnectionError = SSHAuthException = SSHNoCredentialsError = SshError
SSHAccessDeniedViaAuthKeys = SshError
SCPException = ConnectionLost
CommandNotFound = RemoteCommandNotFound = RemoteCommandFailed

AWSError = InvalidOperation = InvalidHostname = SpotHistoryError = AwsError
RegionDoesNotExist = AMIDoesNotExist = InstanceDoesNotExist = NotFound
SecurityGroupDoesNotExist = PlacementGroupDoesNotExist = KeyPairDoesNotExist = NotFound
ZoneDoesNotExist = VolumeDoesNotExist = SnapshotDoesNotExist = NotFound
KeyPairAlreadyExists = AlreadyThere
InstanceNotRunning = NodeError

ConfigSectionMissing = ConfigHasNoSections = ConfigNotFound = KeyNotFound = ConfigError
PluginNotFound = NoDefaultTemplateFound = ConfigError
ClusterTemplateDoesNotExist = InvalidIsoDate = InvalidDevice = InvalidPartition = InputError
PluginLoadError = PluginSyntaxError = PluginError

ValidationError = ClusterValidationError = IncompatibleSettings = ConfigError
InvalidProtocol = InvalidPortRange = InvalidCIDRSpecified = ConfigError
InvalidZone = VolumesZoneError = ConfigError
ClusterDoesNotExist = ClusterExists = ClusterNotRunning = IncompatibleCluster = ClusterError
NoClusterNodesFound = MasterDoesNotExist = ClusterError

ThreadPoolException = SetupError

__all__ = [
    name
    for name, value in globals().items()
    if isinstance(value, type) and issubclass(value, StarClusterError)
]
