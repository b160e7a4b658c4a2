"""What plugins for the original import and call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """A module, class or object of the plugin API.

    Attributes:
        place: ``module`` or ``module:Class``.
        same: Names that it has here too.
        replaced: What replaces the other names.
    """

    place: str
    same: tuple[str, ...]
    replaced: Mapping[str, str] = field(default_factory=dict)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


API: Mapping[str, Api] = {
    "ClusterSetup": Api(
        place="starcluster.clustersetup:ClusterSetup",
        same=_words("run on_add_node on_remove_node on_restart on_shutdown"),
    ),
    "DefaultClusterSetup": Api(
        place="starcluster.clustersetup:DefaultClusterSetup", same=("pool",)
    ),
    "node": Api(
        place="starcluster.node:Node",
        same=_words(
            "add_tag add_to_etc_hosts add_to_known_hosts add_user add_user_to_group apt_command "
            "apt_install cluster_groups dns_name ec2 enable_passwordless_ssh "
            "export_fs_to_nodes generate_key_for_user get_user_map getpwnam id image_id "
            "instance_type ip_address is_instance_store is_master is_spot is_ssh_up is_up "
            "key_location key_name memory mount_nfs_shares num_processors package_install "
            "package_provider parent_cluster placement private_dns_name private_dns_name_short "
            "private_ip_address public_dns_name reboot region remove_from_etc_hosts set_hostname "
            "ssh start state stop stop_exporting_fs_to_nodes tags terminate yum_command "
            "yum_install"
        ),
        replaced={
            "shell": "node.ssh.execute",
            "attach_volume": "a [volume] section of the config",
            "detach_external_volumes": "volumes are detached when the master terminates",
            "get_group_map": "node.ssh.execute('getent group')",
        },
    ),
    "node.ssh": Api(
        place="starcluster.node:Shell",
        same=_words(
            "chmod chown close connect execute execute_async get get_last_status "
            "get_remote_file_lines get_status has_required isdir isfile ls makedirs mkdir "
            "path_exists put remote_file remove_lines_from_file sftp stat switch_user unlink which"
        ),
        replaced={
            "scp": "node.ssh.put and node.ssh.get",
            "transport": "node.ssh.execute; the connection is not shared",
            "get_server_public_key": "node.ssh.host_key",
        },
    ),
    "pool": Api(
        place="starcluster.threadpool:ThreadPool", same=_words("simple_job map wait shutdown")
    ),
    "threadpool": Api(place="starcluster.threadpool", same=_words("ThreadPool get_thread_pool")),
    "utils": Api(place="starcluster.utils", same=_words("chunk_list generate_passwd print_timing")),
    "logger": Api(place="starcluster.logger", same=("log",)),
    "templates": Api(place="starcluster.templates.sge", same=("sge_pe_template",)),
    "static": Api(
        place="starcluster.static",
        same=_words(
            "AVAILABLE_SHELLS CURRENT_USER DEFAULT_SSH_PORT INSTANCE_METADATA_URI INSTANCE_STATES "
            "PID PROTOCOLS SECURITY_GROUP_PREFIX SECURITY_GROUP_TEMPLATE STARCLUSTER_CFG_DIR "
            "STARCLUSTER_CFG_FILE STARCLUSTER_LOG_DIR STARCLUSTER_PLUGIN_DIR TMP_DIR VERSION "
            "VOLUME_ATTACH_STATUS VOLUME_STATUS WORLD_CIDRIP"
        ),
        replaced={"INSTANCE_TYPES": "node.ec2.instance_types, which asks AWS"},
    ),
    "exception": Api(
        place="starcluster.exception",
        same=_words(
            "AMIDoesNotExist AWSError BaseException ClusterDoesNotExist ClusterExists "
            "ClusterNotRunning ClusterTemplateDoesNotExist ClusterValidationError "
            "CommandNotFound ConfigError ConfigHasNoSections ConfigNotFound "
            "ConfigSectionMissing IncompatibleCluster IncompatibleSettings "
            "InstanceDoesNotExist InstanceNotRunning InvalidCIDRSpecified InvalidDevice "
            "InvalidIsoDate InvalidOperation InvalidPartition InvalidPortRange InvalidProtocol "
            "InvalidZone KeyNotFound KeyPairDoesNotExist MasterDoesNotExist "
            "NoClusterNodesFound NoDefaultTemplateFound PlacementGroupDoesNotExist PluginError "
            "PluginLoadError PluginNotFound PluginSyntaxError RegionDoesNotExist "
            "RemoteCommandFailed RemoteCommandNotFound SCPException SSHAuthException "
            "SSHConnectionError SSHError SSHNoCredentialsError SecurityGroupDoesNotExist "
            "SnapshotDoesNotExist SpotHistoryError ThreadPoolException ValidationError "
            "VolumeDoesNotExist VolumesZoneError ZoneDoesNotExist"
        ),
        replaced={
            "CancelledStartRequest": "Ctrl-C says what still runs; plugins do not see it",
            "BucketDoesNotExist": "boto3's errors; starcluster does not use S3 buckets",
        },
    ),
}
"""The parts of the API under the names by which plugins know them."""
