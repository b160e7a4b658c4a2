"""Call EC2, and translate its responses and errors; only this package imports boto3."""

from starcluster.aws.client import AwsClient
from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import (
    EbsVolume,
    Image,
    Instance,
    InstanceType,
    KeyPair,
    LaunchRequest,
    LaunchTemplate,
    Place,
    Region,
    SecurityGroup,
    SpotPrice,
    SpotRequest,
    Subnet,
    Zone,
)

__all__ = [
    "AwsClient",
    "EbsVolume",
    "Ec2",
    "Image",
    "Instance",
    "InstanceType",
    "KeyPair",
    "LaunchRequest",
    "LaunchTemplate",
    "Place",
    "Region",
    "SecurityGroup",
    "SpotPrice",
    "SpotRequest",
    "Subnet",
    "Zone",
]
