"""What AWS's error codes mean for a person, and what to do next; pure."""

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
    """Kind of a code; ``what`` leads AWS's own words, ``fix`` follows."""

    kind: type[AwsError]
    what: str
    fix: str


_ACCOUNT = "Check the keys: aws sts get-caller-identity; starcluster takes them from [aws info], "
_ACCOUNT += "the environment or AWS's own files."
_VCPUS = (
    "New accounts have 0 vCPUs of many GPU types. Ask for more: AWS console, Service Quotas, "
    "Amazon EC2, 'Running On-Demand ... instances' (or 'All ... Spot Instance Requests'), "
    "in {region}."
)
_ASK = "Ask for more: AWS console, Service Quotas, in {region}."
_CAPACITY = (
    "Try another zone (-a), or name fallback_instance_types in the template; "
    "starcluster spothistory TYPE tells where spot is offered."
)
_ELSEWHERE = "Is the region right? It is {region}; choose another with -r."

_GROUPS: tuple[tuple[Meaning, tuple[str, ...]], ...] = (
    (
        Meaning(CapacityError, "AWS has no such instance free", _CAPACITY),
        (
            "InsufficientInstanceCapacity",
            "InsufficientHostCapacity",
            "InsufficientCapacity",
            "UnfulfillableCapacity",
        ),
    ),
    (
        Meaning(CapacityError, "the reservation has no instance free", _CAPACITY),
        ("InsufficientReservedInstanceCapacity",),
    ),
    (
        Meaning(
            CapacityError,
            "the spot bid is below the price now",
            "Raise spot_bid or -b; see: starcluster spothistory TYPE",
        ),
        ("SpotMaxPriceTooLow",),
    ),
    (Meaning(CapacityError, "this zone does not offer it", _CAPACITY), ("Unsupported",)),
    (
        Meaning(QuotaError, "the account's quota of vCPUs is too low", _VCPUS),
        ("VcpuLimitExceeded",),
    ),
    (
        Meaning(QuotaError, "the account's quota of instances is too low", _VCPUS),
        ("InstanceLimitExceeded",),
    ),
    (
        Meaning(QuotaError, "the account's quota of spot instances is too low", _VCPUS),
        ("MaxSpotInstanceCountExceeded",),
    ),
    (
        Meaning(
            QuotaError,
            "the account's quota of volumes is used up",
            "Remove some: starcluster listvolumes; or ask for more at Service Quotas.",
        ),
        ("VolumeLimitExceeded",),
    ),
    (
        Meaning(
            QuotaError, "the account's quota of IOPS is used up", "Ask for more at Service Quotas."
        ),
        ("MaxIOPSLimitExceeded",),
    ),
    (
        Meaning(
            QuotaError,
            "the account's quota of addresses is used up",
            "Ask for more at Service Quotas.",
        ),
        ("AddressLimitExceeded",),
    ),
    (
        Meaning(
            QuotaError,
            "the account's quota of security groups is used up",
            "Delete unused groups, or ask for more at Service Quotas.",
        ),
        ("SecurityGroupLimitExceeded",),
    ),
    (
        Meaning(
            CapacityError,
            "the subnet has too few free addresses",
            "Choose a larger subnet with -N, or name more of them in subnet_id.",
        ),
        ("InsufficientFreeAddressesInSubnet",),
    ),
    (
        Meaning(CapacityError, "the zone has no room for the volumes", _CAPACITY),
        ("InsufficientVolumeCapacity",),
    ),
    (
        Meaning(
            PermissionDenied,
            "the account has not used spot instances yet, and these credentials may not begin",
            "Ask whoever runs the AWS account to run once: "
            "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com",
        ),
        ("AuthFailure.ServiceLinkedRoleCreationNotPermitted",),
    ),
    (
        Meaning(
            QuotaError,
            "AWS is still verifying the account for this region",
            "Wait for AWS's mail, mostly within minutes; or choose another region with -r.",
        ),
        ("PendingVerification",),
    ),
    (
        Meaning(
            PermissionDenied,
            "the account has not subscribed to this",
            (
                "For an image: accept its terms in the AWS Marketplace. For a region: "
                "enable it in the account's settings."
            ),
        ),
        ("OptInRequired",),
    ),
    (
        Meaning(
            PermissionDenied,
            "these credentials may not do {operation}",
            "Ask whoever runs the AWS account to allow ec2:{operation}.",
        ),
        ("UnauthorizedOperation",),
    ),
    (
        Meaning(
            PermissionDenied,
            "these credentials may not do {operation}",
            "Ask whoever runs the AWS account to allow {operation}.",
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
            f"{_ACCOUNT} A region may have to be enabled for the account first.",
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
        Meaning(CredentialsError, "the secret key does not belong to the access key", _ACCOUNT),
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
            "the session of these credentials is over",
            "Log in again, such as: aws sso login",
        ),
        (
            "ExpiredToken",
            "ExpiredTokenException",
        ),
    ),
    (
        Meaning(
            CredentialsError,
            "AWS found the request too old",
            "Is this machine's clock right? Or the session is over: aws sso login",
        ),
        ("RequestExpired",),
    ),
    (
        Meaning(PermissionDenied, "AWS has blocked the account", "Write to AWS support."),
        ("Blocked",),
    ),
    (
        Meaning(
            AlreadyThere,
            "something still uses it",
            ("What uses it must go first: starcluster listclusters, starcluster listinstances"),
        ),
        ("DependencyViolation",),
    ),
    (
        Meaning(
            AlreadyThere,
            "the volume is attached to an instance",
            "Stop or terminate what uses it: starcluster listvolumes",
        ),
        ("VolumeInUse",),
    ),
    (
        Meaning(
            AlreadyThere,
            "instances are still in the placement group",
            "Wait until they are terminated, then try again.",
        ),
        ("InvalidPlacementGroup.InUse",),
    ),
    (Meaning(NotFound, "there is no such placement group", ""), ("InvalidPlacementGroup.Unknown",)),
    (
        Meaning(NotFound, "there is no such spot request", "See: starcluster listspots"),
        ("InvalidSpotInstanceRequestID.NotFound",),
    ),
    (
        Meaning(
            NotFound, "there is no such instance", f"See: starcluster listinstances. {_ELSEWHERE}"
        ),
        ("InvalidInstanceID.NotFound",),
    ),
    (
        Meaning(NotFound, "that is no instance's id", "See: starcluster listinstances"),
        ("InvalidInstanceID.Malformed",),
    ),
    (
        Meaning(NotFound, "there is no such image", f"See: starcluster listimages. {_ELSEWHERE}"),
        ("InvalidAMIID.NotFound",),
    ),
    (
        Meaning(NotFound, "that is no image's id", "See: starcluster listimages"),
        ("InvalidAMIID.Malformed",),
    ),
    (
        Meaning(NotFound, "the image is not available", "See: starcluster listimages"),
        ("InvalidAMIID.Unavailable",),
    ),
    (
        Meaning(NotFound, "there is no such SSM parameter", f"Give an image's id. {_ELSEWHERE}"),
        ("ParameterNotFound",),
    ),
    (
        Meaning(NotFound, "there is no such volume", f"See: starcluster listvolumes. {_ELSEWHERE}"),
        ("InvalidVolume.NotFound",),
    ),
    (
        Meaning(NotFound, "that is no volume's id", "See: starcluster listvolumes"),
        ("InvalidParameterValue.VolumeId",),
    ),
    (Meaning(NotFound, "there is no such snapshot", _ELSEWHERE), ("InvalidSnapshot.NotFound",)),
    (
        Meaning(
            NotFound,
            "there is no such key pair in {region}",
            ("See: starcluster listkeypairs; make one: starcluster createkey NAME -o FILE -a"),
        ),
        ("InvalidKeyPair.NotFound",),
    ),
    (
        Meaning(
            AlreadyThere,
            "a key pair of this name exists in {region}",
            "Choose another name, or remove it: starcluster removekey NAME",
        ),
        ("InvalidKeyPair.Duplicate",),
    ),
    (
        Meaning(
            AwsError,
            "AWS cannot read the key",
            (
                "It takes ED25519 and RSA public keys; make a new one: starcluster "
                "createkey NAME -o FILE"
            ),
        ),
        ("InvalidKey.Format",),
    ),
    (Meaning(NotFound, "there is no such subnet", _ELSEWHERE), ("InvalidSubnetID.NotFound",)),
    (
        Meaning(AlreadyThere, "a security group of this name exists", ""),
        ("InvalidGroup.Duplicate",),
    ),
    (
        Meaning(AlreadyThere, "the security group has this rule already", ""),
        ("InvalidPermission.Duplicate",),
    ),
    (
        Meaning(
            NotFound,
            "{region} has no default VPC",
            "Give subnet_id in the template, or make one: aws ec2 create-default-vpc",
        ),
        ("VPCIdNotSpecified",),
    ),
    (
        Meaning(
            Throttled,
            "too many requests at once",
            "Wait a minute, then try again; nothing is lost.",
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
            "AWS had an error of its own",
            "Try again; https://health.aws.amazon.com tells of outages.",
        ),
        (
            "InternalError",
            "InternalFailure",
            "Unavailable",
            "ServiceUnavailable",
        ),
    ),
)
MEANINGS: dict[str, Meaning] = {code: meaning for meaning, codes in _GROUPS for code in codes}

DRY_RUN_PASSED = "DryRunOperation"

# Often another one than that of the request: a launch with tags needs ec2:CreateTags too.
_ACTION = re.compile(r"not authorized to perform: ([\w-]+:\w+)")
# A blob for an administrator's tool, thousands of letters long.
_ENCODED = re.compile(r"\s*Encoded authorization failure message: \S+")


def translate(code: str, message: str, *, operation: str, region: str) -> AwsError:
    """Return the error of AWS's ``code`` and ``message``; AWS's own words are in it."""
    meaning = MEANINGS.get(code) or _by_form(code)
    facts = {"operation": operation, "region": region}
    words = _ENCODED.sub("", message).strip().rstrip(".")
    what = f"{meaning.what.format(**facts)}: {words}" if words else meaning.what.format(**facts)
    what = f"{what} ({code}, {operation})"
    fix = meaning.fix.format(**facts)
    if meaning.kind is PermissionDenied and (action := _ACTION.search(words)):
        fix = f"Ask whoever runs the AWS account to allow {action[1]}."
    if meaning.kind is CapacityError and operation == "StartInstances":
        fix = "Stopped instances start in their own zone only: try later, or start a new cluster."
    return meaning.kind(what, fix, code=code, operation=operation)


def _by_form(code: str) -> Meaning:
    if code.endswith((".NotFound", ".Unknown")):
        return Meaning(NotFound, "AWS does not know it", _ELSEWHERE)
    if code.endswith((".Duplicate", ".InUse")):
        return Meaning(AlreadyThere, "AWS has one already, or it is in use", "")
    if code.endswith("LimitExceeded"):
        return Meaning(QuotaError, "a quota of the account is used up", _ASK)
    return Meaning(AwsError, "AWS refused", "")


def wrong_parameters(message: str, *, operation: str) -> InputError:
    """Return the error of a request that botocore did not send."""
    return InputError(f"{operation} was not sent: {message}")
