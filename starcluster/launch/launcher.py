"""Launch the instances of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from starcluster.aws.aliases import packed
from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import Instance, LaunchRequest, Place, Subnet
from starcluster.config.template import Template
from starcluster.errors import (
    AwsError,
    CapacityError,
    ClusterError,
    InputError,
    NotFound,
    Unreachable,
)
from starcluster.launch import groups, hold, plan
from starcluster.launch.hold import Held
from starcluster.launch.origin import Origin, origin_tags
from starcluster.launch.plan import Planned
from starcluster.launch.survey import LaunchContext
from starcluster.launch.userdata import TAG_HOST_KEY, new_host_key, scripts_of, user_data
from starcluster.model import TAG_ALIAS, TAG_ALIASES, TAG_CLUSTER, TAG_NAME, TAG_VERSION
from starcluster.threadpool import ThreadPool

VERSION = "1"
"""Version of the format of the tags."""
TAG_DESCRIPTION = "starcluster:description"
_TAG_LETTERS = 256

_ROUNDING = 1e-6
NAMED_IN_CONSOLE = 32
"""Largest launch whose nodes get individual names in AWS's console: each costs a request."""
Progress = Callable[[str, str], None]
Ask = Callable[[LaunchRequest], tuple[list[Instance], list[AwsError]]]


class Launcher:
    """Launches nodes of one cluster within the max_hourly_cost of its template.

    Attributes:
        made: The launched instances, named.
        sent: Every instance that AWS may have launched, by alias; None without a response.
    """

    def __init__(
        self,
        ec2: Ec2,
        name: str,
        template: Template,
        origin: Origin,
        context: LaunchContext,
        progress: Progress = lambda alias, what: None,
        description: str = "",
    ) -> None:
        self.ec2, self.name, self.template = ec2, name, template
        self._dollars: dict[str, float] = {}  # per hour, by alias
        self._zone = ""
        self.made: list[Instance] = []
        self.group = ""  # id of the security group
        self.sent: dict[str, Instance | None] = {}
        if len(description) > _TAG_LETTERS:
            raise InputError(
                f"the description is too long: {len(description)} characters, "
                f"a tag can have {_TAG_LETTERS}",
                "Shorten it: -d TEXT",
            )
        self._more_tags = {TAG_DESCRIPTION: description} if description else {}
        self.origin, self.context, self._progress = origin, context, progress

    def join(self, *, dollars: float, zone: str) -> None:
        """Set cost (dollars per hour) and zone of the nodes that the cluster already has."""
        self._dollars[""], self._zone = dollars, zone

    def check(self, nodes: Sequence[Planned]) -> None:
        """Ask AWS whether it would launch ``nodes``; creates nothing."""
        base = self._base("", "")  # with the tags, because permissions can depend on them
        for batch in plan.batches(nodes):
            request = self._request(batch, base, self.context.subnets)
            self.ec2.check_run(replace(request, group_ids=(), placement_group=""))

    def launch(self, nodes: Sequence[Planned], held: Held) -> list[Instance]:
        """Launch ``nodes`` with a claim; return their tagged instances in the same order.

        Raises:
            ClusterError: Another command has taken over the claim.
            CapacityError: Some nodes could not be launched anywhere. The launched ones are tagged
                and in :attr:`made`.
        """
        self.made = []
        self._held = held
        group = groups.security_group(self.ec2, self.name, self.template, vpc=self.context.vpc)
        self.group = group
        placement = groups.placement_group(self.ec2, self.name, self.template)
        base = replace(self._base(group, placement), template_id=held.id)
        made: dict[str, Instance] = {}
        for node in nodes:
            cost = plan.cost([node], self.context.on_demand, self.context.spot)
            self._dollars[node.alias] = cost.dollars
        for batch in plan.batches(nodes):
            for node in batch:
                self._progress(node.alias, "launching")
            request = self._request(batch, base, self._near(placement))
            made |= self._launch(batch, request)
            self._zone = self._zone or next(iter(made.values())).zone
        return [made[node.alias] for node in nodes]

    def _near(self, placement: str) -> list[Subnet]:
        """Return the subnets, those in the zone of the cluster's first nodes first."""
        if placement and self._zone:  # the group is in one zone; a fleet would try all
            return [subnet for subnet in self.context.subnets if subnet.zone == self._zone]
        # Traffic within a zone is fast and free.
        return sorted(self.context.subnets, key=lambda subnet: subnet.zone != self._zone)

    def relaunch(self, alias: str) -> Instance:
        """Launch a replacement instance for the node ``alias``."""
        planned = {node.alias: node for node in plan.whole_cluster(self.template)}
        short = alias.removeprefix(f"{self.name}-")
        node = planned.get(short) or plan.more_nodes(self.template, [short])[0]
        host = plan.host_name(self.name, node.alias, self.template)
        with hold.take(self.ec2, self.name, "addnode", [host], progress=self._progress) as held:
            return self.launch([node], held)[0]

    def _base(self, group: str, placement: str) -> LaunchRequest:
        """Return the settings that all nodes of a launch share, including a new host key."""
        key = new_host_key()
        return LaunchRequest(
            image_id="",
            count=0,
            places=(),
            group_ids=(group,) if group else (),
            user_data=user_data(key, scripts_of(self.template)),
            placement_group=placement,
            tags={
                TAG_CLUSTER: self.name,
                TAG_VERSION: VERSION,
                TAG_HOST_KEY: key.public,
                TAG_NAME: self.name,
                **origin_tags(self.origin),
                **self._more_tags,
            },
        )

    def _request(
        self, batch: Sequence[Planned], base: LaunchRequest, subnets: Sequence[Subnet]
    ) -> LaunchRequest:
        image = self.context.images[batch[0].image_id]
        kind = batch[0].instance_type
        where = plan.places(self.template, kind, subnets, self.context.offers)
        if not where:
            zones = ", ".join(self.context.offers.get(kind, ())) or "none"
            raise CapacityError(
                f"no subnet of this cluster is in a zone that offers {kind} (zones: {zones})",
                "Choose one of these zones with -a, or a subnet there with -N.",
            )
        own = replace(base, image_id=image.id, root_device=image.root_device)
        return plan.request(batch, where, self.template, own)

    def _launch(self, batch: Sequence[Planned], request: LaunchRequest) -> dict[str, Instance]:
        named: dict[str, Instance] = {}
        if request.spot:
            made, errors = self._send(batch, request, self.ec2.run_fleet)
            named = self._named(batch, made)
            if len(made) == request.count:
                return named
            why = f": {errors[0].what}" if errors else ""
            count = len(batch) - len(made)
            self._progress("", f"launching {count} of {len(batch)} on demand instead of spot{why}")
            batch = batch[len(made) :]
            request = replace(request, spot=False, spot_bid=None, count=len(batch))
        missing: CapacityError | None = None
        for place in request.places:
            if not self._affords(batch, place.instance_type):
                what = f"{place.instance_type} on demand would exceed max_hourly_cost"
                fix = "Raise max_hourly_cost or spot_bid in the template."
                missing = missing or CapacityError(what, fix)
                continue
            tags = {**request.tags, **self._names(batch)}
            attempt = replace(request, places=(place,), tags=tags)
            try:
                made, _ = self._send(batch, attempt, lambda wanted: (self.ec2.run(wanted), []))
                return named | self._named(batch, made)
            except CapacityError as error:
                missing = error
                self._progress("", f"no capacity for {_shown(place)}")
        assert missing is not None  # noqa: S101 - there is at least one place
        raise missing

    def _send(
        self, batch: Sequence[Planned], request: LaunchRequest, ask: Ask
    ) -> tuple[list[Instance], list[AwsError]]:
        """Send a launch with its token, and note in :attr:`sent` what it may have launched."""
        aliases = [plan.host_name(self.name, node.alias, self.template) for node in batch]
        places = [f"{place.instance_type} {place.subnet_id}" for place in request.places]
        token = self._held.token("spot" if request.spot else "", *aliases, *places)
        self.sent |= dict.fromkeys(aliases)
        self._held.launched = list(self.sent)
        try:
            made, errors = ask(replace(request, token=token))
        except Unreachable:
            raise
        except AwsError as error:  # AWS refused, so nothing was launched
            self._forget(aliases)
            if isinstance(error, NotFound) and error.code.startswith("InvalidLaunchTemplate"):
                raise ClusterError(
                    f"another command took over cluster '{self.name}' during the launch",
                    f"See what runs: starcluster listclusters {self.name}",
                ) from error
            raise
        self.sent |= dict(zip(aliases, made, strict=False))
        self._forget(aliases[len(made) :])
        return made, errors

    def _forget(self, aliases: Sequence[str]) -> None:
        for alias in aliases:
            self.sent.pop(alias, None)
        self._held.launched = list(self.sent)

    def _affords(self, batch: Sequence[Planned], instance_type: str) -> bool:
        """Return whether ``batch`` on demand stays within max_hourly_cost; if so, add its cost."""
        limit = self.template.max_hourly_cost
        price = self.context.on_demand.get(instance_type)
        if limit is None:
            return True
        dollars = self._dollars | dict.fromkeys((node.alias for node in batch), price or 0.0)
        if price is None or sum(dollars.values()) > limit + _ROUNDING:
            return False
        self._dollars = dollars
        return True

    def _names(self, batch: Sequence[Planned]) -> dict[str, str]:
        """Return the tags that give instances of one launch their aliases."""
        aliases = [plan.host_name(self.name, node.alias, self.template) for node in batch]
        if len(aliases) == 1:
            return tags_of_node(self.name, aliases[0])
        text = packed(aliases)
        return {TAG_ALIASES: text} if text else {}

    def _named(self, batch: Sequence[Planned], made: Sequence[Instance]) -> dict[str, Instance]:
        """Return launched instances by short alias; tag those that the launch did not name."""
        nodes = {plan.host_name(self.name, node.alias, self.template): node for node in batch}
        there = {instance.alias: instance for instance in made if instance.alias in nodes}
        left = [alias for alias in nodes if alias not in there]
        there |= dict(
            zip(left, (instance for instance in made if not instance.alias), strict=False)
        )

        many = len(made) > NAMED_IN_CONSOLE

        def name(alias: str, instance: Instance) -> Instance:
            tags = tags_of_node(self.name, alias)
            known = instance.alias == alias
            if known and (many or tags.items() <= instance.tags.items()):
                return instance
            try:
                self.ec2.tag([instance.id], tags)
            except AwsError:
                if not known:
                    raise
            return replace(instance, tags={**instance.tags, **tags})

        named = ThreadPool().map(name, list(there), list(there.values()))
        self.made += named
        return {nodes[alias].alias: instance for alias, instance in zip(there, named, strict=True)}


def tags_of_node(cluster: str, alias: str) -> dict[str, str]:
    """Return the tags that make an instance the node ``alias`` of ``cluster``."""
    return {TAG_ALIAS: alias, TAG_NAME: f"{cluster}-{alias.removeprefix(f'{cluster}-')}"}


def _shown(place: Place) -> str:
    return f"{place.instance_type} in {place.zone or place.subnet_id or 'this region'}"
