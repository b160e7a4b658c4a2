"""Take the claim of a cluster before a launch, and end it afterwards."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Sequence
from types import TracebackType

from starcluster.aws.aliases import packed
from starcluster.aws.ec2 import Ec2
from starcluster.aws.instances import LIVE
from starcluster.aws.model import Instance
from starcluster.errors import AlreadyThere, AwsError, NotFound, PermissionDenied
from starcluster.launch import wait
from starcluster.launch.claims import (
    POLL_S,
    STALE_S,
    TAG_BY,
    TAG_COMMAND,
    TAG_DONE,
    TAG_PROCESS,
    TERMINATE,
    Claim,
    busy,
    claim_name,
    claim_of,
    existing,
    exists,
    settle,
)
from starcluster.launch.process import this_process
from starcluster.logger import log
from starcluster.model import TAG_ALIASES, TAG_CLUSTER, group_name

_LETTERS = 256
Progress = Callable[[str, str], None]


class Held:
    """A claim that this process holds; a context manager that ends it.

    Attributes:
        previous: The claim that it replaced.
        launched: Aliases of the instances that the launch may have created.
        taken: Aliases of the instances that existed before.
    """

    def __init__(self, ec2: Ec2, cluster: str, id: str, previous: Claim | None) -> None:
        self.id, self.previous = id, previous
        self.launched: list[str] = []
        self.taken: set[str] = set()
        self._ended = False
        self._ec2, self._cluster, self._since = ec2, cluster, time.monotonic()

    def __enter__(self) -> Held:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._ended:
            return
        self._ended = True
        if self.launched:
            self._finish()
        else:
            self.release()

    def announce(self, aliases: Sequence[str]) -> None:
        """Store the aliases of the nodes that are about to be launched."""
        self._ec2.tag([self.id], {TAG_ALIASES: packed(aliases)})

    def token(self, *parts: str) -> str:
        """Return the idempotency token of one request of this launch."""
        return hashlib.sha256("\0".join((self.id, *parts)).encode()).hexdigest()

    def _finish(self) -> None:
        """Keep the claim as a record of the launch, for commands to which AWS's list lags."""
        seconds = f"{time.monotonic() - self._since:.1f}"
        try:
            self._ec2.tag([self.id], {TAG_DONE: seconds, TAG_ALIASES: packed(self.launched)})
        except AwsError as error:  # the claim ends by its age
            log.debug("cannot tag %s: %s", self.id, error.what)

    def release(self) -> None:
        """Delete the claim; nothing was launched, or nothing is left of it."""
        if not self.id:
            return
        try:
            self._ec2.delete_template(self.id)
        except NotFound:  # another command took over
            pass
        except AwsError as error:
            command = f"aws ec2 delete-launch-template --launch-template-id {self.id}"
            log.warning("cannot delete a launch template: %s. Delete it: %s", error.what, command)


def take(
    ec2: Ec2,
    cluster: str,
    command: str,
    aliases: Sequence[str] = (),
    *,
    progress: Progress | None = None,
) -> Held:
    """Take the claim of ``cluster``.

    Args:
        command: Name of the command: ``start``, ``addnode`` or ``terminate``. ``terminate`` takes
            over any claim.
        progress: If given, wait while another command holds the claim.

    Raises:
        ClusterError: Another command holds the claim, or the cluster of a ``start`` exists.
    """
    limit = time.monotonic() + STALE_S + wait.LAG_S
    said = ""
    seen: list[Instance] = []
    while True:
        found = claim_of(ec2, cluster)
        if found is not None and command != TERMINATE:
            if found.active and (progress is None or found.command == TERMINATE):
                raise busy(found)
            if found.active and progress is not None:
                if said != found.id:
                    progress("", f"waiting: the cluster is being {found}")
                said = found.id
                time.sleep(POLL_S)
                continue
            # AWS can list an instance and then not, so this list is kept.
            seen = [each for each in settle(ec2, found) if each.state in LIVE]
            if command == "start":
                _require_none(ec2, cluster, seen)
        if found is None or _deleted(ec2, found):
            with contextlib.suppress(AlreadyThere):
                held = Held(ec2, cluster, _create(ec2, cluster, command, aliases), found)
                held.taken = {each.alias for each in seen}
                return held
        if time.monotonic() > limit:
            raise busy(found, cluster)
        time.sleep(POLL_S)  # AWS does not list the other command's claim yet


def _require_none(ec2: Ec2, cluster: str, seen: list[Instance]) -> None:
    found = existing(ec2, cluster)
    if not found and ec2.security_groups(group_name(cluster)):
        found = seen
    if found:
        raise exists(ec2, cluster, found)


def _deleted(ec2: Ec2, claim: Claim) -> bool:
    """Delete a claim; return False if another command did it first."""
    try:
        ec2.delete_template(claim.id)
    except NotFound:
        return False
    return True


def _create(ec2: Ec2, cluster: str, command: str, aliases: Sequence[str]) -> str:
    process, by = this_process()
    tags = {
        TAG_CLUSTER: cluster,
        TAG_ALIASES: packed(aliases),
        TAG_BY: by[:_LETTERS],
        TAG_COMMAND: command,
        TAG_PROCESS: process,
    }
    try:
        return ec2.create_template(claim_name(cluster), tags)
    except PermissionDenied:
        if command != TERMINATE:
            raise
        return ""  # who may only terminate needs no claim
    except KeyboardInterrupt:
        with contextlib.suppress(AwsError):
            mine = claim_of(ec2, cluster)
            if mine is not None and mine.process == process:
                _deleted(ec2, mine)
        raise
