"""Create an image of a running node without its secrets."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator

from starcluster.aws.ec2 import Ec2
from starcluster.aws.instances import settled
from starcluster.aws.model import Image
from starcluster.errors import AwsError, InputError, Interrupted, StarClusterError, Unreachable
from starcluster.launch.tags import users_tags
from starcluster.launch.wait import backoff_delays
from starcluster.logger import log
from starcluster.model import TAG_CLUSTER, TAG_NAME
from starcluster.node.node import Node
from starcluster.setup import steps

BEGUN_S, READY_S = 300.0, 7200.0
_BACK_S = 900
# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateImage.html
_NAME = re.compile(r"[\w()\[\] ./'@-]{3,128}", re.ASCII)


def check_image_name(name: str) -> None:
    """Raise InputError for an image name that AWS does not accept."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"invalid image name '{name}'",
            "Use 3 to 128 letters, digits, spaces and ()[]./-'@_",
        )


def make_image(
    ec2: Ec2,
    node: Node,
    name: str,
    description: str = "",
    progress: Callable[[str, str], None] = lambda alias, what: None,
) -> Image:
    """Create an image of a running node's root volume; return it when it is available.

    Secrets are off the disk until AWS has started the snapshot, which stores the state of the disk
    at its start.

    Raises:
        AwsError: AWS failed to create the image.
        Interrupted: Ctrl-C; the fix names the image that AWS creates nevertheless.
    """
    tags = {
        **users_tags(node.instance.tags),
        TAG_NAME: name,
        TAG_CLUSTER: node.instance.cluster,
    }
    progress(node.alias, "removing keys, user data and histories from the disk")
    steps.hide_secrets(node, limit_s=_BACK_S)
    try:
        id = ec2.create_image(node.id, name, description=description, tags=tags)
        progress(node.alias, f"creating image {id}")
        with _named_if_interrupted(id):
            _wait(ec2, id, BEGUN_S, lambda image: bool(image.snapshots), lambda image: None)
    finally:
        _bring_back(node)
    progress(node.alias, "keys, user data and histories restored")

    def report(image: Image) -> None:
        with contextlib.suppress(AwsError):  # only progress
            progress("", f"{image.id}: {ec2.progress_of(image.snapshots)} % stored")

    with _named_if_interrupted(id):
        return _wait(ec2, id, READY_S, lambda image: image.state == "available", report)


@contextlib.contextmanager
def _named_if_interrupted(id: str) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as error:
        what = f"interrupted {error}".strip()
        fix = f"AWS creates image {id} and bills its snapshots. Delete it: "
        raise Interrupted(what, f"{fix}starcluster removeimage {id}") from error


def _bring_back(node: Node) -> None:
    try:
        steps.restore_secrets(node)
    except StarClusterError as error:
        log.warning(
            "%s: cannot restore its keys now, they return within %d s: %s",
            node.alias,
            _BACK_S,
            error.what,
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
            raise AwsError(f"AWS could not create image {id}: its state is {image.state}")
        if done(image):
            return image
        if time.monotonic() > deadline:
            raise Unreachable(
                f"image {id} is still {image.state} after {limit_s:g} s",
                "Check it: starcluster listimages",
            )
        report(image)
        time.sleep(pause)
    raise AssertionError
