"""An image of a running node, without what must not be in one."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable

from starcluster.aws.ec2 import Ec2
from starcluster.aws.instances import settled
from starcluster.aws.model import Image
from starcluster.errors import AwsError, InputError, StarClusterError, Unreachable
from starcluster.launch.wait import backoff_delays
from starcluster.logger import log
from starcluster.model import TAG_NAME
from starcluster.node.node import Node
from starcluster.setup import steps

BEGUN_S, READY_S = 300.0, 7200.0
_BACK_S = 900
# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateImage.html
_NAME = re.compile(r"[\w()\[\] ./'@-]{3,128}", re.ASCII)


def check_image_name(name: str) -> None:
    """Raise InputError for what AWS takes for no image's name."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"'{name}' cannot be the name of an image",
            "Take 3 to 128 letters, digits, blanks and ()[]./-'@_",
        )


def make_image(
    ec2: Ec2,
    node: Node,
    name: str,
    description: str = "",
    progress: Callable[[str, str], None] = lambda alias, what: None,
) -> Image:
    """Make an image of a running node's root volume; return it when it can be used.

    What is private is off the disk until AWS has begun the snapshot, which has the disk as it is
    at that moment.

    Raises:
        AwsError: AWS made none.
    """
    progress(node.alias, "taking keys, user data and histories off its disk")
    steps.hide_secrets(node, limit_s=_BACK_S)
    try:
        tags = {TAG_NAME: name}
        id = ec2.create_image(node.id, name, description=description, tags=tags)
        progress(node.alias, f"image {id} begins")
        begun = _wait(ec2, id, BEGUN_S, lambda image: bool(image.snapshots), lambda image: None)
    finally:
        _bring_back(node)
    ec2.tag(begun.snapshots, tags)
    progress(node.alias, "it has its keys again")

    def report(image: Image) -> None:
        with contextlib.suppress(AwsError):  # only for people
            progress("", f"{image.id}: {ec2.progress_of(image.snapshots)} % stored")

    return _wait(ec2, id, READY_S, lambda image: image.state == "available", report)


def _bring_back(node: Node) -> None:
    try:
        steps.restore_secrets(node)
    except StarClusterError as error:
        log.warning(
            "%s: its keys come back by themselves within %d s: %s", node.alias, _BACK_S, error.what
        )


def _wait(
    ec2: Ec2,
    id: str,
    limit_s: float,
    done: Callable[[Image], bool],
    report: Callable[[Image], None],
) -> Image:
    deadline = time.monotonic() + limit_s
    for pause in backoff_delays():
        image = settled(lambda: ec2.image(id))
        if image.state in ("failed", "error", "invalid"):
            raise AwsError(f"AWS made no image {id}: it is {image.state}")
        if done(image):
            return image
        if time.monotonic() > deadline:
            raise Unreachable(
                f"image {id} is {image.state} after {limit_s:g} s", "See: starcluster listimages"
            )
        report(image)
        time.sleep(pause)
    raise AssertionError
