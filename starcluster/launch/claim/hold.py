"""Take the claim of a cluster before a change of its instances, and end it afterwards."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from types import TracebackType

from starcluster.aws.aliases import packed
from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import Instance
from starcluster.errors import AlreadyThere, AwsError, NotFound, PermissionDenied
from starcluster.launch import wait
from starcluster.launch.claim.claims import (
    DELETED,
    POLL_S,
    STALE_S,
    TAG_BY,
    TAG_COMMAND,
    TAG_DONE,
    TAG_PROCESS,
    TAG_STATE,
    TERMINATE,
    Claim,
    busy,
    claim_name,
    claim_of,
    existing,
    exists,
)
from starcluster.launch.claim.current import relist, settle
from starcluster.launch.claim.process import this_process
from starcluster.logger import log
from starcluster.model import TAG_ALIASES, TAG_CLUSTER, TAG_LETTERS, group_name

_LAUNCHES = ("start", "addnode")
Progress = Callable[[str, str], None]


class Held:
    """A claim that this process holds; a context manager that ends it.

    Attributes:
        previous: The claim that it replaced.
        there: The instances before the change; empty for a terminate.
        before: The aliases before the change, as far as known; None for a terminate of a cluster
            whose last command left no claim.
        launched: Aliases of the instances that the command may have launched.
        removed: Aliases of the instances that it terminated.
        state: State of all nodes after the change; empty if they are in several.
        record: The claim after its end; None until then, and if ``before`` is None.
    """

    def __init__(
        self,
        ec2: Ec2,
        cluster: str,
        id: str,
        previous: Claim | None = None,
        *,
        there: Sequence[Instance] = (),
        before: Sequence[str] | None = (),
        since: float | None = None,
    ) -> None:
        """Hold the claim ``id``.

        Args:
            since: Monotonic time before the request that created it. Default: now.
        """
        self.id, self.previous = id, previous
        self.there, self.before = list(there), before
        self.launched: list[str] = []
        self.removed: set[str] = set()
        self.state = ""
        self.record: Claim | None = None
        self._ended = False
        self._ec2, self.cluster = ec2, cluster
        self._since = time.monotonic() if since is None else since

    def __enter__(self) -> Held:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def end(self) -> None:
        """End the claim: keep it as a record, or delete it if the cluster has no instances."""
        if self._ended:
            return
        self._ended = True
        kept = [alias for alias in self.before or () if alias not in self.removed]
        aliases = list(dict.fromkeys(filter(None, [*kept, *self.launched])))
        if self.before is not None:
            self.record = self._recorded(aliases)
        if self.id and aliases:
            self._finish(aliases)
        elif self.id:
            self.release()

    def announce(self, aliases: Sequence[str]) -> None:
        """Store the aliases of the nodes that are about to be launched."""
        self._ec2.tag([self.id], {TAG_ALIASES: packed([*(self.before or ()), *aliases])})

    def token(self, *parts: str) -> str:
        """Return the idempotency token of one request of this launch."""
        return hashlib.sha256("\0".join((self.id, *parts)).encode()).hexdigest()

    def _recorded(self, aliases: list[str]) -> Claim:
        process, by = this_process()
        return Claim(
            id=self.id,
            cluster=self.cluster,
            by=by,
            command="",
            process=process,
            since=datetime.now(UTC),
            age_s=0.0,
            aliases=tuple(aliases),
            state=self.state,
            done_s=0.0,
        )

    def _finish(self, aliases: list[str]) -> None:
        """Keep the claim as a record of the change, for commands to which AWS's list lags."""
        tags = {
            TAG_DONE: f"{time.monotonic() - self._since:.1f}",
            TAG_ALIASES: packed(aliases),
            TAG_STATE: self.state,
        }
        try:
            self._ec2.tag([self.id], tags)
        except AwsError as error:  # the claim ends by its age
            log.debug("cannot tag %s: %s", self.id, error.what)

    def release(self) -> None:
        """Delete the claim; nothing was launched, or nothing is left of it."""
        try:
            self._ec2.delete_template(self.id)
            DELETED.add(self.id)
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
    tags: Mapping[str, str] | None = None,
) -> Held:
    """Take the claim of ``cluster``.

    Args:
        command: Name of the command, such as ``addnode``. ``terminate`` takes over any claim.
        aliases: The nodes that the command launches.
        tags: More tags of the claim. Default: those of the last claim.
        progress: If given, wait while another command holds the claim.

    Raises:
        NotTaken: Another command holds the claim, or the cluster of a ``start`` exists.
    """
    limit = time.monotonic() + STALE_S + wait.LAG_S
    said = ""
    seen: list[Instance] = []
    while True:
        found = claim_of(ec2, cluster)
        other: Claim | None = None
        if found is not None and found.active and command == "start":
            other, found = found, None  # possibly deleted, and still listed: creating one shows it
        if found is not None and found.active and command != TERMINATE:
            said = _wait_for(found, said, progress)
            continue
        seen = _instances(ec2, cluster, command, found, seen)
        before: list[str] | None = _aliases(seen)
        if command == TERMINATE:
            before = list(found.aliases) if found else None
        more = tags if tags is not None else found.more if found else {}
        wanted = _tags(cluster, command, [*(before or ()), *aliases], more)
        since = time.monotonic()
        try:
            if found is None or _deleted(ec2, found):
                id = ec2.create_template(claim_name(cluster), wanted)
                if found is None and command not in ("start", TERMINATE):
                    # Nothing tells which nodes exist, as after a kill in the lines above.
                    seen = relist(ec2, cluster)
                    before = _aliases(seen)
                return Held(ec2, cluster, id, found, there=seen, before=before, since=since)
        except AlreadyThere:
            if other is not None:
                raise busy(other) from None
            # AWS does not list the other command's claim yet
        except PermissionDenied:
            if command in _LAUNCHES:
                raise
            # Who can only stop nodes does not need a claim.
            return Held(ec2, cluster, "", found, there=seen, before=before)
        except KeyboardInterrupt:
            _keep(ec2, cluster, wanted, before)
            raise
        if time.monotonic() > limit:
            raise busy(found, cluster)
        time.sleep(POLL_S)


def _wait_for(found: Claim, said: str, progress: Progress | None) -> str:
    """Wait until the next look at the claim of another command, and tell once; return its id.

    Raises:
        NotTaken: Nobody waits for it.
    """
    if progress is None or found.command == TERMINATE:
        raise busy(found)
    if said != found.id:
        progress("", f"waiting: the cluster is being {found}")
    time.sleep(POLL_S)
    return found.id


def _instances(
    ec2: Ec2, cluster: str, command: str, found: Claim | None, seen: list[Instance]
) -> list[Instance]:
    """Return the instances before the change; ``seen`` if they are known already.

    AWS can list an instance and then not, so the list that agrees with the last claim is kept.
    """
    if command == TERMINATE or (command == "start" and found is None):
        return seen
    if found is None:
        return ec2.instances(cluster=cluster)
    settled = settle(ec2, found)
    if command == "start":
        _require_none(ec2, cluster, settled)
    return settled


def _aliases(instances: Sequence[Instance]) -> list[str]:
    return [each.alias for each in instances if each.alias]


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
    DELETED.add(claim.id)
    return True


def _tags(
    cluster: str, command: str, aliases: Sequence[str], more: Mapping[str, str]
) -> dict[str, str]:
    process, by = this_process()
    return {
        **more,
        TAG_CLUSTER: cluster,
        TAG_ALIASES: packed(aliases),
        TAG_BY: by[:TAG_LETTERS],
        TAG_COMMAND: command,
        TAG_PROCESS: process,
    }


def _keep(ec2: Ec2, cluster: str, tags: Mapping[str, str], before: Sequence[str] | None) -> None:
    """Keep a claim that was interrupted as a record of nodes ``before``; without any, delete it.

    Its requests have possibly taken effect: the last claim is deleted, and the new one is there.
    """
    with contextlib.suppress(AwsError):
        mine = claim_of(ec2, cluster)
        if mine is not None and mine.process == tags[TAG_PROCESS]:
            Held(ec2, cluster, mine.id, before=before).end()
        elif before:
            id = ec2.create_template(claim_name(cluster), tags)
            Held(ec2, cluster, id, before=before).end()
