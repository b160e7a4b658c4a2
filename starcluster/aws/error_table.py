"""Meanings of AWS error codes in plain English, each with a fix; pure."""

from __future__ import annotations

import re
from typing import NamedTuple

from starcluster.errors import (
    AlreadyThere,
    AwsError,
    CapacityError,
    CredentialsError,
    InputError,
    NotFound,
    PermissionDenied,
    QuotaError,
    Throttled,
    Unreachable,
)


class Meaning(NamedTuple):
    """Class, text and fix of an error code; the message of AWS follows ``what``."""

    kind: type[AwsError]
    what: str
    fix: str


_ACCOUNT = "Check the keys: aws sts get-caller-identity. starcluster reads them from [aws info], "
_ACCOUNT += "the environment or the AWS config files."
_VCPUS = (
    "New accounts have 0 vCPUs for many GPU types. Request more: AWS console, Service Quotas, "
    "Amazon EC2, 'Running On-Demand ... instances' (or 'All ... Spot Instance Requests'), "
    "in {region}."
)
_ASK = "Request more: AWS console, Service Quotas, in {region}."
_CAPACITY = (
    "Try another zone (-a), or set fallback_instance_types in the template. "
    "Zones that offer spot instances: starcluster spothistory TYPE"
)
_ELSEWHERE = "The region is {region}; choose another with -r."

_GROUPS: tuple[tuple[Meaning, tuple[str, ...]], ...] = (
    (
        Meaning(CapacityError, "AWS has no capacity for this instance type", _CAPACITY),
        (
            "InsufficientInstanceCapacity",
            "InsufficientHostCapacity",
            "InsufficientCapacity",
            "UnfulfillableCapacity",
        ),
    ),
    (
        Meaning(
            CapacityError,
            "the capacity reservation is full",
            "An instance that ends leaves it after some minutes. Otherwise start fewer nodes.",
        ),
        ("InsufficientReservedInstanceCapacity", "ReservationCapacityExceeded"),
    ),
    (
        Meaning(
            CapacityError,
            "the spot bid is below the current price",
            "Raise spot_bid (-b). See the prices: starcluster spothistory TYPE",
        ),
        ("SpotMaxPriceTooLow",),
    ),
    (
        Meaning(CapacityError, "AWS does not support this request in this zone", _CAPACITY),
        ("Unsupported",),
    ),
    (
        Meaning(QuotaError, "the vCPU quota of the account is too low", _VCPUS),
        ("VcpuLimitExceeded",),
    ),
    (
        Meaning(QuotaError, "the instance quota of the account is too low", _VCPUS),
        ("InstanceLimitExceeded",),
    ),
    (
        Meaning(QuotaError, "the spot instance quota of the account is too low", _VCPUS),
        ("MaxSpotInstanceCountExceeded",),
    ),
    (
        Meaning(
            QuotaError,
            "the volume quota of the account is exhausted",
            "Remove volumes (starcluster listvolumes), or request more in Service Quotas.",
        ),
        ("VolumeLimitExceeded",),
    ),
    (
        Meaning(
            QuotaError,
            "the IOPS quota of the account is exhausted",
            "Request more in Service Quotas.",
        ),
        ("MaxIOPSLimitExceeded",),
    ),
    (
        Meaning(
            QuotaError,
            "the address quota of the account is exhausted",
            "Request more in Service Quotas.",
        ),
        ("AddressLimitExceeded",),
    ),
    (
        Meaning(
            QuotaError,
            "the security group quota of the account is exhausted",
            "Delete unused groups, or request more in Service Quotas.",
        ),
        ("SecurityGroupLimitExceeded",),
    ),
    (
        Meaning(
            CapacityError,
            "the subnet has too few free addresses",
            "Choose a larger subnet with -N, or list more subnets in subnet_id.",
        ),
        ("InsufficientFreeAddressesInSubnet",),
    ),
    (
        Meaning(CapacityError, "the zone has no capacity for the volumes", _CAPACITY),
        ("InsufficientVolumeCapacity",),
    ),
    (
        Meaning(
            PermissionDenied,
            "spot instances are not enabled for the account, "
            "and these credentials cannot enable them",
            "Ask the administrator of the AWS account to run once: "
            "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com",
        ),
        ("AuthFailure.ServiceLinkedRoleCreationNotPermitted",),
    ),
    (
        Meaning(
            QuotaError,
            "AWS is still verifying the account for this region",
            "Wait for the email from AWS, usually a few minutes, or choose another region with -r.",
        ),
        ("PendingVerification",),
    ),
    (
        Meaning(
            PermissionDenied,
            "the account has no subscription for this",
            (
                "For an image, accept its terms in the AWS Marketplace. For a region, "
                "enable it in the account settings."
            ),
        ),
        ("OptInRequired",),
    ),
    (
        Meaning(
            PermissionDenied,
            "these credentials do not have the permission for {operation}",
            "Ask the administrator of the AWS account to allow ec2:{operation}.",
        ),
        ("UnauthorizedOperation",),
    ),
    (
        Meaning(
            PermissionDenied,
            "these credentials do not have the permission for {operation}",
            "Ask the administrator of the AWS account to allow {operation}.",
        ),
        (
            "AccessDenied",
            "AccessDeniedException",
        ),
    ),
    (
        Meaning(
            CredentialsError,
            "AWS does not accept the credentials in {region}",
            f"{_ACCOUNT} Some regions must be enabled for the account first.",
        ),
        ("AuthFailure",),
    ),
    (
        Meaning(CredentialsError, "AWS does not know the access key", _ACCOUNT),
        (
            "InvalidClientTokenId",
            "UnrecognizedClientException",
        ),
    ),
    (
        Meaning(CredentialsError, "the secret key does not match the access key", _ACCOUNT),
        ("SignatureDoesNotMatch",),
    ),
    (
        Meaning(CredentialsError, "the credentials are incomplete", _ACCOUNT),
        (
            "IncompleteSignature",
            "MissingAuthenticationToken",
        ),
    ),
    (
        Meaning(
            CredentialsError,
            "the session of these credentials has expired",
            "Renew it, for example: aws sso login",
        ),
        (
            "ExpiredToken",
            "ExpiredTokenException",
        ),
    ),
    (
        Meaning(
            CredentialsError,
            "AWS rejected the request because it is too old",
            "Check the clock of this machine. If the session has expired: aws sso login",
        ),
        ("RequestExpired",),
    ),
    (
        Meaning(PermissionDenied, "AWS has blocked the account", "Contact AWS support."),
        ("Blocked",),
    ),
    (
        Meaning(
            AlreadyThere,
            "another resource still uses it",
            "Remove what uses it first: starcluster listclusters, starcluster listinstances",
        ),
        ("DependencyViolation",),
    ),
    (
        Meaning(
            AlreadyThere,
            "the volume is attached to an instance",
            "Stop or terminate that instance. To see which: starcluster listvolumes",
        ),
        ("VolumeInUse",),
    ),
    (
        Meaning(
            AlreadyThere,
            "the placement group still contains instances",
            "Wait until they are terminated, then retry.",
        ),
        ("InvalidPlacementGroup.InUse",),
    ),
    (
        Meaning(
            NotFound,
            "no such role or instance profile",
            "List them: aws iam list-instance-profiles",
        ),
        ("NoSuchEntity",),
    ),
    (
        Meaning(NotFound, "no such capacity reservation", _ELSEWHERE),
        ("InvalidCapacityReservationId.NotFound",),
    ),
    (Meaning(NotFound, "no such resource group", _ELSEWHERE), ("NotFoundException",)),
    (Meaning(NotFound, "no such placement group", ""), ("InvalidPlacementGroup.Unknown",)),
    (
        Meaning(AlreadyThere, "the role already exists", "List the roles: aws iam list-roles"),
        ("EntityAlreadyExists",),
    ),
    (
        Meaning(NotFound, "no such spot instance request", "List them: starcluster listspots"),
        ("InvalidSpotInstanceRequestID.NotFound",),
    ),
    (
        Meaning(
            NotFound, "no such instance", f"List instances: starcluster listinstances. {_ELSEWHERE}"
        ),
        ("InvalidInstanceID.NotFound",),
    ),
    (
        Meaning(NotFound, "invalid instance id", "List instances: starcluster listinstances"),
        ("InvalidInstanceID.Malformed",),
    ),
    (
        Meaning(NotFound, "no such image", f"List images: starcluster listimages. {_ELSEWHERE}"),
        ("InvalidAMIID.NotFound",),
    ),
    (
        Meaning(NotFound, "invalid image id", "List images: starcluster listimages"),
        ("InvalidAMIID.Malformed",),
    ),
    (
        Meaning(NotFound, "the image is not available", "List images: starcluster listimages"),
        ("InvalidAMIID.Unavailable",),
    ),
    (
        Meaning(NotFound, "no such SSM parameter", f"Use an image id instead. {_ELSEWHERE}"),
        ("ParameterNotFound",),
    ),
    (
        Meaning(NotFound, "no such volume", f"List volumes: starcluster listvolumes. {_ELSEWHERE}"),
        ("InvalidVolume.NotFound",),
    ),
    (
        Meaning(NotFound, "invalid volume id", "List volumes: starcluster listvolumes"),
        ("InvalidParameterValue.VolumeId",),
    ),
    (Meaning(NotFound, "no such snapshot", _ELSEWHERE), ("InvalidSnapshot.NotFound",)),
    (
        Meaning(NotFound, "no such file system", _ELSEWHERE),
        ("FileSystemNotFound", "AccessPointNotFound"),
    ),
    (Meaning(NotFound, "no such bucket", ""), ("NoSuchBucket",)),
    (
        Meaning(
            NotFound,
            "no such key pair in {region}",
            "List key pairs: starcluster listkeypairs. "
            "Create one: starcluster createkey NAME -o FILE -a",
        ),
        ("InvalidKeyPair.NotFound",),
    ),
    (
        Meaning(
            AlreadyThere,
            "a key pair of this name already exists in {region}",
            "Choose another name, or remove it: starcluster removekey NAME",
        ),
        ("InvalidKeyPair.Duplicate",),
    ),
    (
        Meaning(
            AwsError,
            "AWS cannot read the key",
            (
                "It must be an ED25519 or RSA public key. Create one: starcluster "
                "createkey NAME -o FILE"
            ),
        ),
        ("InvalidKey.Format",),
    ),
    (Meaning(NotFound, "no such subnet", _ELSEWHERE), ("InvalidSubnetID.NotFound",)),
    (
        Meaning(AlreadyThere, "a security group of this name already exists", ""),
        ("InvalidGroup.Duplicate",),
    ),
    (
        Meaning(AlreadyThere, "a launch template of this name already exists", ""),
        ("InvalidLaunchTemplateName.AlreadyExistsException",),
    ),
    (
        Meaning(NotFound, "no such launch template", _ELSEWHERE),
        (
            "InvalidLaunchTemplateId.NotFound",
            "InvalidLaunchTemplateName.NotFoundException",
        ),
    ),
    (
        Meaning(AlreadyThere, "the security group already has this rule", ""),
        ("InvalidPermission.Duplicate",),
    ),
    (
        Meaning(
            NotFound,
            "{region} has no default VPC",
            "Set subnet_id in the template, or create one: aws ec2 create-default-vpc",
        ),
        ("VPCIdNotSpecified",),
    ),
    (
        Meaning(
            Throttled,
            "too many requests",
            "Wait a minute, then retry; nothing is lost.",
        ),
        (
            "RequestLimitExceeded",
            "Throttling",
            "ThrottlingException",
            "TooManyRequestsException",
        ),
    ),
    (
        Meaning(
            Unreachable,
            "AWS had an internal error",
            "Retry. For outages see https://health.aws.amazon.com",
        ),
        (
            "InternalError",
            "InternalFailure",
            "Unavailable",
            "ServiceUnavailable",
        ),
    ),
)
_NO_PROFILE = Meaning(
    NotFound,
    "EC2 does not accept the instance profile",
    "List them: aws iam list-instance-profiles. It needs a role. "
    "EC2 knows a new one after a minute at most; then rerun the command.",
)
MEANINGS: dict[str, Meaning] = {code: meaning for meaning, codes in _GROUPS for code in codes}

DRY_RUN_PASSED = "DryRunOperation"

# The missing permission can be for another action: a launch with tags needs ec2:CreateTags too.
_ACTION = re.compile(r"not authorized to perform: ([\w-]+:\w+)(?: on resource: (\S+))?")
# An encoded message for administrators, thousands of characters long.
_ENCODED = re.compile(r"\s*Encoded authorization failure message: \S+")


def translate(code: str, message: str, *, operation: str, region: str) -> AwsError:
    """Return the error for a ``code`` of AWS; it includes the code and ``message``."""
    meaning = _by_message(code, message) or MEANINGS.get(code) or _by_form(code)
    facts = {"operation": operation, "region": region}
    words = _ENCODED.sub("", message).strip().rstrip(".")
    what = f"{meaning.what.format(**facts)}: {words}" if words else meaning.what.format(**facts)
    what = f"{what} ({code}, {operation})"
    fix = meaning.fix.format(**facts)
    if meaning.kind is PermissionDenied and (action := _ACTION.search(words)):
        fix = f"Ask the administrator of the AWS account to allow {action[1]}"
        fix += f" on {action[2]}." if action[2] else "."
    if meaning.kind is CapacityError and operation == "StartInstances":
        fix = "A stopped instance cannot change its zone. Retry later, or start a new cluster."
    return meaning.kind(what, fix, code=code, operation=operation)


def _by_message(code: str, message: str) -> Meaning | None:
    """Return the meaning of an error whose code is that of many errors."""
    if code == "InvalidParameterValue" and "instanceprofile" in message.lower().replace(" ", ""):
        return _NO_PROFILE
    return None


def _by_form(code: str) -> Meaning:
    if code.endswith((".NotFound", ".Unknown")):
        return Meaning(NotFound, "AWS has no such resource", _ELSEWHERE)
    if code.endswith((".Duplicate", ".InUse")):
        return Meaning(AlreadyThere, "the resource already exists or is in use", "")
    if code.endswith("LimitExceeded"):
        return Meaning(QuotaError, "a quota of the account is exhausted", _ASK)
    return Meaning(AwsError, "AWS refused the request", "")


def wrong_parameters(message: str, *, operation: str) -> InputError:
    """Return the error of a request that botocore refused to send."""
    return InputError(f"invalid arguments for {operation}: {message}")
