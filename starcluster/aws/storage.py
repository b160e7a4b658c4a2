"""Volumes, snapshots and images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starcluster.aws import responses
from starcluster.aws.client import AwsClient
from starcluster.aws.instances import as_filters
from starcluster.aws.model import EbsVolume, Image
from starcluster.errors import InputError, NotFound
from starcluster.model import TAG_CLUSTER

_SEE_IMAGES = (
    "List images: starcluster listimages NAME. The default image is an SSM parameter of AWS."
)

# The most names that one GetParameters accepts.
_PARAMETERS_A_REQUEST = 10


class Storage(AwsClient):
    """Requests about disks and images."""

    def volumes(
        self, ids: Sequence[str] = (), *, filters: Mapping[str, Sequence[str]] | None = None
    ) -> list[EbsVolume]:
        """Return all volumes, or those of ``ids`` or ``filters``; an unknown id raises NotFound."""
        arguments: dict[str, Any] = {"VolumeIds": list(ids)} if ids else {}
        if filters:
            arguments["Filters"] = as_filters(filters)
        found = self.pages("ec2", "DescribeVolumes", "Volumes", **arguments)
        return [responses.ebs_volume(item) for item in found]

    def volume(self, id: str) -> EbsVolume:
        """Return one volume. Raises NotFound."""
        found = self.volumes([id])
        if not found:
            raise NotFound(f"no such volume: {id}", "List volumes: starcluster listvolumes")
        return found[0]

    def create_volume(
        self,
        size_gib: int,
        zone: str,
        *,
        type: str = "gp3",
        snapshot_id: str = "",
        tags: Mapping[str, str] | None = None,
    ) -> EbsVolume:
        """Create an encrypted volume; without a snapshot it has no file system yet."""
        arguments: dict[str, Any] = {
            "Size": size_gib,
            "AvailabilityZone": zone,
            "VolumeType": type,
            "Encrypted": True,
        }
        if snapshot_id:
            arguments["SnapshotId"] = snapshot_id
        if tags:
            arguments["TagSpecifications"] = responses.tag_specifications(tags, "volume")
        return responses.ebs_volume(self.call("ec2", "CreateVolume", **arguments))

    def wait_volume(self, id: str, state: str, *, limit_s: float) -> None:
        """Wait until a volume is in ``state``: available, in_use or deleted. Raises Unreachable."""
        self.wait("ec2", f"volume_{state}", delay_s=3, limit_s=limit_s, VolumeIds=[id])

    def attach_volume(self, id: str, instance_id: str, device: str) -> None:
        """Attach a volume as ``device``."""
        self.call("ec2", "AttachVolume", VolumeId=id, InstanceId=instance_id, Device=device)

    def grow_volume(self, id: str, size_gib: int) -> None:
        """Enlarge a volume; its file system must be enlarged on the node."""
        self.call("ec2", "ModifyVolume", VolumeId=id, Size=size_gib)

    def delete_volume(self, id: str) -> None:
        """Delete a volume with all its data."""
        self.call("ec2", "DeleteVolume", VolumeId=id)

    def images(
        self,
        ids: Sequence[str] = (),
        *,
        name: str = "",
        owners: Sequence[str] = (),
        shared: bool = False,
        filters: Mapping[str, Sequence[str]] | None = None,
    ) -> list[Image]:
        """Return images, newest first; ``*`` in ``name`` matches any text.

        Args:
            shared: Only images that other accounts share with this account.
        """
        arguments: dict[str, Any] = {"ImageIds": list(ids)} if ids else {}
        if owners:
            arguments["Owners"] = list(owners)
        if shared:
            arguments["ExecutableUsers"] = ["self"]
        named = {"name": [name], "state": ["available"]} if name else {}
        if wanted := as_filters({**named, **(filters or {})}):
            arguments["Filters"] = wanted
        found = self.pages("ec2", "DescribeImages", "Images", **arguments)
        return sorted(
            (responses.image(item) for item in found), key=lambda i: i.created, reverse=True
        )

    def image(self, reference: str) -> Image:
        """Return an image by id, by SSM parameter, or the newest by name. Raises NotFound."""
        if not reference:
            raise InputError("missing image", "Set node_image_id in the template.")
        if reference.startswith(("/", "ssm:", "resolve:ssm:")):
            reference = self.parameter(reference.split("ssm:", 1)[-1])
        if reference.startswith("ami-"):
            found = self.images([reference])
        else:
            # Anyone can publish an image under any name, so trust only these owners.
            found = self.images(name=reference, owners=["self", "amazon"])
        if not found:
            raise NotFound(f"no image '{reference}' in {self.region}", _SEE_IMAGES)
        return found[0]

    def create_image(
        self, instance_id: str, name: str, *, description: str = "", tags: Mapping[str, str]
    ) -> str:
        """Start to create an image of the root volume, without a reboot; return its id.

        ``tags`` are also those of its snapshots.
        """
        attached = {"attachment.instance-id": [instance_id]}
        answer = self.call("ec2", "DescribeInstances", InstanceIds=[instance_id])
        root = answer["Reservations"][0]["Instances"][0].get("RootDeviceName")
        others = [
            volume.device for volume in self.volumes(filters=attached) if volume.device != root
        ]
        arguments: dict[str, Any] = {"Description": description} if description else {}
        if others:  # exclude data volumes from the image
            arguments["BlockDeviceMappings"] = [
                {"DeviceName": device, "NoDevice": ""} for device in others
            ]
        answer = self.call(
            "ec2",
            "CreateImage",
            InstanceId=instance_id,
            Name=name,
            NoReboot=True,
            TagSpecifications=responses.tag_specifications(tags, "image", "snapshot"),
            **arguments,
        )
        return str(answer["ImageId"])

    def images_of(self, cluster: str) -> list[Image]:
        """Return the images of this account that were created from nodes of a cluster."""
        return self.images(owners=["self"], filters={f"tag:{TAG_CLUSTER}": [cluster]})

    def deregister_image(self, id: str) -> None:
        """Remove an image; its snapshots stay."""
        self.call("ec2", "DeregisterImage", ImageId=id)

    def delete_snapshot(self, id: str) -> None:
        """Delete a snapshot. Raises AlreadyThere if an image or volume uses it."""
        self.call("ec2", "DeleteSnapshot", SnapshotId=id)

    def progress_of(self, snapshots: Sequence[str]) -> int:
        """Return the progress of the slowest of ``snapshots``, in percent."""
        found = self.pages("ec2", "DescribeSnapshots", "Snapshots", SnapshotIds=list(snapshots))
        percents = [str(snapshot.get("Progress") or "0").rstrip("%") for snapshot in found]
        return min((int(percent) if percent.isdigit() else 0 for percent in percents), default=0)

    def parameters(self, names: Sequence[str]) -> dict[str, str]:
        """Return the values of SSM parameters by name, without those that the region lacks."""
        found: dict[str, str] = {}
        for start in range(0, len(names), _PARAMETERS_A_REQUEST):
            batch = list(names[start : start + _PARAMETERS_A_REQUEST])
            answer = self.call("ssm", "GetParameters", Names=batch)
            found |= {str(row["Name"]): str(row["Value"]) for row in answer["Parameters"]}
        return found

    def parameter(self, name: str) -> str:
        """Return the value of an SSM parameter. Raises NotFound."""
        answer = self.call("ssm", "GetParameter", Name=name)
        return str(answer["Parameter"]["Value"])
