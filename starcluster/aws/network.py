"""Networks, security groups, placement groups and key pairs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence

from starcluster.aws import responses
from starcluster.aws.client import AwsClient
from starcluster.aws.instances import as_filters, settled
from starcluster.aws.model import ElasticIp, KeyPair, SecurityGroup, Subnet
from starcluster.config.sections import Permission
from starcluster.errors import AlreadyThere, NotFound

_DELETED: set[str] = set()
"""Ids of the security groups that this process has deleted; AWS can still list them."""


class Network(AwsClient):
    """Requests about networks and keys."""

    def default_vpc(self) -> str:
        """Return the id of the region's default VPC. Raises NotFound."""
        filters = as_filters({"is-default": ["true"]})
        found = list(self.pages("ec2", "DescribeVpcs", "Vpcs", Filters=filters))
        if not found:
            fix = "Set subnet_id in the template, or create one: aws ec2 create-default-vpc"
            raise NotFound(f"{self.region} has no default VPC", fix)
        return str(found[0]["VpcId"])

    def subnets(
        self, ids: Sequence[str] = (), *, vpc: str = "", zones: Sequence[str] = ()
    ) -> list[Subnet]:
        """Return subnets by id, or those of a VPC and zones; an unknown id raises NotFound."""
        filters = as_filters({"vpc-id": [vpc] if vpc else [], "availability-zone": zones})
        arguments = {"SubnetIds": list(ids)} if ids else {"Filters": filters}
        found = self.pages("ec2", "DescribeSubnets", "Subnets", **arguments)
        return [responses.subnet(item) for item in found]

    def security_groups(self, name: str = "*", *, vpc: str = "") -> list[SecurityGroup]:
        """Return security groups; ``*`` in ``name`` matches any text."""
        filters = as_filters({"group-name": [name], "vpc-id": [vpc] if vpc else []})
        found = self.pages("ec2", "DescribeSecurityGroups", "SecurityGroups", Filters=filters)
        groups = [responses.security_group(item) for item in found]
        return [group for group in groups if group.id not in _DELETED]

    def create_security_group(
        self, name: str, *, vpc: str, description: str, tags: Mapping[str, str] | None = None
    ) -> str:
        """Create a security group whose members can connect to each other; return its id."""
        group = str(
            self.call(
                "ec2",
                "CreateSecurityGroup",
                GroupName=name,
                Description=description,
                VpcId=vpc,
                TagSpecifications=responses.tag_specifications(tags or {}, "security-group"),
            )["GroupId"]
        )
        settled(lambda: self.join_members(group))
        return group

    def join_members(self, group_id: str) -> None:
        """Allow the members of a group to connect to each other on every port."""
        among = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group_id}]}
        arguments = {"GroupId": group_id, "IpPermissions": [among]}
        with contextlib.suppress(AlreadyThere):
            self.call("ec2", "AuthorizeSecurityGroupIngress", **arguments)

    def join_members_outbound(self, group_id: str) -> None:
        """Allow the members of a group all traffic to each other explicitly, as EFA requires."""
        among = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group_id}]}
        arguments = {"GroupId": group_id, "IpPermissions": [among]}
        with contextlib.suppress(AlreadyThere):
            self.call("ec2", "AuthorizeSecurityGroupEgress", **arguments)

    def open_ports(self, group_id: str, permissions: Iterable[Permission]) -> None:
        """Open ports to addresses; ports that are open already stay open."""
        for permission in permissions:
            try:
                self.call(
                    "ec2",
                    "AuthorizeSecurityGroupIngress",
                    GroupId=group_id,
                    IpPermissions=[responses.ip_permission(permission)],
                )
            except AlreadyThere:
                continue

    def close_ports(self, group_id: str, permissions: Iterable[Permission]) -> None:
        """Close ports to addresses; ports that are closed already stay closed."""
        for permission in permissions:
            with contextlib.suppress(NotFound):
                self.call(
                    "ec2",
                    "RevokeSecurityGroupIngress",
                    GroupId=group_id,
                    IpPermissions=[responses.ip_permission(permission)],
                )

    def delete_security_group(self, group_id: str) -> None:
        """Delete a security group. Raises AlreadyThere while an instance is in it."""
        self.call("ec2", "DeleteSecurityGroup", GroupId=group_id)
        _DELETED.add(group_id)

    def placement_groups(self, name: str = "*") -> list[str]:
        """Return names of placement groups; ``*`` in ``name`` matches any text."""
        filters = as_filters({"group-name": [name]})
        answer = self.call("ec2", "DescribePlacementGroups", Filters=filters)
        return [str(group["GroupName"]) for group in answer.get("PlacementGroups", ())]

    def create_placement_group(self, name: str, tags: Mapping[str, str]) -> None:
        """Create a placement group whose instances are close together."""
        self.call(
            "ec2",
            "CreatePlacementGroup",
            GroupName=name,
            Strategy="cluster",
            TagSpecifications=responses.tag_specifications(tags, "placement-group"),
        )

    def delete_placement_group(self, name: str) -> None:
        """Delete a placement group. Raises AlreadyThere while an instance is in it."""
        self.call("ec2", "DeletePlacementGroup", GroupName=name)

    def elastic_ips(self, instances: Sequence[str]) -> list[ElasticIp]:
        """Return the elastic addresses of instances, which stay when these are terminated."""
        filters = as_filters({"instance-id": instances})
        answer = self.call("ec2", "DescribeAddresses", Filters=filters)
        return [
            ElasticIp(ip=address["PublicIp"], allocation=address.get("AllocationId") or "")
            for address in answer.get("Addresses", ())
        ]

    def key_pairs(self, names: Sequence[str] = ()) -> list[KeyPair]:
        """Return all key pairs, or those of ``names``; a missing one raises NotFound."""
        arguments = {"KeyNames": list(names)} if names else {}
        answer = self.call("ec2", "DescribeKeyPairs", IncludePublicKey=True, **arguments)
        return [responses.key_pair(item) for item in answer.get("KeyPairs", ())]

    def create_key_pair(
        self, name: str, tags: Mapping[str, str] | None = None
    ) -> tuple[KeyPair, str]:
        """Create an ED25519 key pair; return it and its private key, which AWS does not keep."""
        more = {"TagSpecifications": responses.tag_specifications(tags or {}, "key-pair")}
        answer = self.call("ec2", "CreateKeyPair", KeyName=name, KeyType="ed25519", **more)
        return responses.key_pair(answer), str(answer["KeyMaterial"])

    def import_key_pair(
        self, name: str, public_key: str, tags: Mapping[str, str] | None = None
    ) -> KeyPair:
        """Import a public key, one line as in ``id_ed25519.pub``."""
        answer = self.call(
            "ec2",
            "ImportKeyPair",
            KeyName=name,
            PublicKeyMaterial=public_key.encode(),
            TagSpecifications=responses.tag_specifications(tags or {}, "key-pair"),
        )
        return responses.key_pair(answer)

    def delete_key_pair(self, name: str) -> None:
        """Delete a key pair; AWS does not report a missing one as an error."""
        self.call("ec2", "DeleteKeyPair", KeyName=name)
