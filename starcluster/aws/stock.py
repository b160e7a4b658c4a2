"""Images of AWS, Canonical and Debian for nodes, by the SSM parameters that have their ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from starcluster.aws.ec2 import Ec2
from starcluster.config.template import DEFAULT_IMAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class StockImage:
    """A stock choice, and the image that it means today; ``id`` is empty if the region lacks it.

    Attributes:
        parameter: The SSM parameter; a value for node_image_id.
        driver: Whether the image has the NVIDIA driver.
        default: Whether it is the default of node_image_id.
    """

    choice: str
    architecture: str
    parameter: str
    driver: bool
    default: bool = False
    id: str = ""
    name: str = ""
    created: str = ""


# Where the names are documented:
# https://docs.aws.amazon.com/dlami/latest/devguide/find-dlami-id.html
# https://documentation.ubuntu.com/aws/aws-how-to/instances/find-ubuntu-images/
# https://wiki.debian.org/Cloud/AmazonEC2Image
_ARCHITECTURES = {"x86_64": "amd64", "arm64": "arm64"}
_LEARNING = "/aws/service/deeplearning/ami/{0}/base-oss-nvidia-driver-gpu-ubuntu-{1}/latest/ami-id"
_UBUNTU = "/aws/service/canonical/ubuntu/server/{1}/stable/current/{0}/hvm/ebs-{2}/ami-id"
_DEBIAN = "/aws/service/debian/release/{1}/latest/{0}"


def choices() -> Iterator[StockImage]:
    """Yield all stock choices, without asking AWS."""
    for architecture, name in _ARCHITECTURES.items():
        rows = [
            (f"Deep Learning Base, Ubuntu {release}", _LEARNING.format(architecture, release))
            for release in ("24.04", "22.04")
        ]
        rows += [
            (f"Ubuntu {release}", _UBUNTU.format(name, release, disk))
            for release, disk in (("24.04", "gp3"), ("22.04", "gp2"))
        ]
        rows += [(f"Debian {release}", _DEBIAN.format(name, release)) for release in ("13", "12")]
        for choice, parameter in rows:
            yield StockImage(
                choice=choice,
                architecture=architecture,
                parameter=parameter,
                driver="nvidia-driver" in parameter,
                default=parameter == DEFAULT_IMAGE,
            )


def stock_images(ec2: Ec2) -> list[StockImage]:
    """Return the image that each stock choice means today in the region."""
    offered = list(choices())
    ids = ec2.parameters([each.parameter for each in offered])
    images = {}
    if ids:
        filters = {"image-id": sorted(set(ids.values()))}
        images = {image.id: image for image in ec2.images(filters=filters)}
    found = []
    for each in offered:
        image = images.get(ids.get(each.parameter, ""))
        found.append(
            replace(
                each,
                id=ids.get(each.parameter, ""),
                name=image.name if image else "",
                created=image.created if image else "",
            )
        )
    return found
