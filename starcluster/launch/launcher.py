"""Launch the instances of a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import Instance, LaunchRequest, Place, Subnet
from starcluster.config.template import Template
from starcluster.errors import AwsError, CapacityError, QuotaError, Throttled, Unreachable
from starcluster.launch import efa, groups, names, plan, zones
from starcluster.launch.budget import Budget
from starcluster.launch.claim import hold
from starcluster.launch.claim.hold import Held
from starcluster.launch.origin import Origin
from starcluster.launch.plan import Planned
from starcluster.launch.sent import Ask, Sent
from starcluster.launch.survey import LaunchContext
from starcluster.launch.tags import cluster_tags, instance_tags
from starcluster.launch.userdata import new_host_key, scripts_of, user_data
from starcluster.model import TAG_HOST_KEY

Progress = Callable[[str, str], None]


class Launcher:
    """Launches nodes of one cluster within the max_hourly_cost of its template.

    Attributes:
        login_key: Public key that can log in to new nodes, in addition to the key pair.
        made: The launched instances, named.
        sent: Every instance that AWS may have launched, by alias; None without a response.
        group: Id of the security group; empty until AWS has told it.
        makes_group: Whether a request for the group was possibly sent; False after its removal.
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
        self._budget = Budget(template.max_hourly_cost, context.on_demand)
        self._zone = ""
        self.login_key = ""
        self.made: list[Instance] = []
        self.group = ""
        self.makes_group = False
        self.sent = Sent()
        self._tags = instance_tags(name, template, origin, description)
        self.context, self._progress = context, progress

    def join(self, *, dollars: float, zone: str) -> None:
        """Set cost (dollars per hour) and zone of the nodes that the cluster already has."""
        self._budget.add("", dollars)
        self._zone = zone

    def check(self, nodes: Sequence[Planned]) -> None:
        """Ask AWS whether it would launch ``nodes``; creates nothing."""
        base = self._base("", "")  # with the tags, because permissions can depend on them
        for batch in plan.batches(nodes):
            request = self._request(batch, base, self.context.subnets)
            cards = efa.interfaces(self.context.efa.get(request.places[0].instance_type))
            self.ec2.check_run(replace(request, group_ids=(), placement_group="", interfaces=cards))

    def launch(self, nodes: Sequence[Planned], held: Held) -> list[Instance]:
        """Launch ``nodes`` with a claim; return their tagged instances in the same order.

        Raises:
            ClusterError: Another command has taken over the claim.
            CapacityError: Some nodes could not be launched anywhere. The launched ones are tagged
                and in :attr:`made`.
        """
        self.made = []
        self._held = held
        group = self.group = self._security_group(new=not held.before)
        if self.context.efa:
            groups.join_outbound(self.ec2, self.name, group)
        placement = ""
        # The nodes of a reservation are outside of a new placement group.
        close = bool(self.context.efa) and not self.context.reserved.found
        if self.template.placement_group or close:
            placement = groups.placement_group(self.ec2, self.name, self.template)
        base = replace(self._base(group, placement), template_id=held.id)
        made: dict[str, Instance] = {}
        for node in nodes:
            cost = plan.cost([node], self.context.on_demand, self.context.spot)
            self._budget.add(node.alias, cost.dollars)
        for batch in plan.batches(nodes):
            for node in batch:
                self._progress(node.alias, "launching")
            request = self._request(batch, base, self._near(placement))
            launched = self._launch(batch, request)
            made |= launched
            self._zone = self._zone or next(iter(made.values())).zone
            self._tell_zones(launched.values())
        return [made[node.alias] for node in nodes]

    def _security_group(self, *, new: bool) -> str:
        self.makes_group = True
        try:
            return groups.security_group(
                self.ec2,
                self.name,
                self.template,
                vpc=self.context.vpc,
                caller=self.context.caller,
                more=self.context.ports,
                new=new,
            )
        except AwsError as error:
            refused = not isinstance(error, (Unreachable, Throttled))
            self.makes_group = not (refused and error.operation == "CreateSecurityGroup")
            raise

    def _tell_zones(self, launched: Iterable[Instance]) -> None:
        """Report nodes that are not in the zone of the cluster."""
        away = Counter(each.zone for each in launched if each.zone not in ("", self._zone))
        for zone, count in away.items():
            text = f"{count} of the new nodes are in {zone}, the cluster is in {self._zone}"
            self._progress("", f"{text}: AWS bills traffic between zones")

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
        tags = dict(self.template.tags)
        with hold.take(
            self.ec2, self.name, "addnode", [host], progress=self._progress, tags=tags
        ) as held:
            return self.launch([node], held)[0]

    def _base(self, group: str, placement: str) -> LaunchRequest:
        """Return the settings that all nodes of a launch share, including a new host key."""
        key = new_host_key()
        return LaunchRequest(
            image_id="",
            count=0,
            places=(),
            group_ids=(group,) if group else (),
            user_data=user_data(key, scripts_of(self.template), login_key=self.login_key),
            placement_group=placement,
            tags={**self._tags, TAG_HOST_KEY: key.public},
            other_tags=cluster_tags(self.name, self.template),
        )

    def _request(
        self, batch: Sequence[Planned], base: LaunchRequest, subnets: Sequence[Subnet]
    ) -> LaunchRequest:
        image = self.context.images[batch[0].image_id]
        kind = batch[0].instance_type
        reserved = self.context.reserved
        where = plan.places(self.template, kind, subnets, self.context.offers)
        where = reserved.usable(where, kind)
        if not where:
            zones = ", ".join(self.context.offers.get(kind, ())) or "none"
            raise CapacityError(
                f"no subnet of this cluster is in a zone that offers {kind} (zones: {zones})",
                "Choose one of these zones with -a, or a subnet there with -N.",
            )
        own = replace(
            base,
            image_id=image.id,
            root_device=image.root_device,
            capacity_reservation=reserved.target(kind, spot=batch[0].spot),
            capacity_block=kind in reserved.prepaid,
        )
        if not self.template.placement_group and kind not in self.context.efa:
            own = replace(own, placement_group="")
        return plan.request(batch, where, self.template, own)

    def _launch(self, batch: Sequence[Planned], request: LaunchRequest) -> dict[str, Instance]:
        named: dict[str, Instance] = {}
        if request.spot:
            made, errors = self._launch_spot(batch, request)
            named = self._named(batch, made)
            if len(made) == request.count:
                return named
            why = f": {errors[0].what}" if errors else ""
            count = len(batch) - len(made)
            self._progress("", f"launching {count} of {len(batch)} on demand instead of spot{why}")
            batch = batch[len(made) :]
            request = replace(request, spot=False, spot_bid=None, count=len(batch))
            if made and request.placement_group:
                near = tuple(each for each in request.places if each.zone == made[0].zone)
                request = replace(request, places=near)
        missing: CapacityError | None = None
        for place in request.places:
            if not self._budget.affords(batch, place.instance_type):
                what = f"{place.instance_type} on demand would exceed max_hourly_cost"
                fix = "Raise max_hourly_cost or spot_bid in the template."
                missing = missing or CapacityError(what, fix)
                continue
            try:
                made, _ = self._run(batch, request, place)
                return named | self._named(batch, made)
            except CapacityError as error:
                missing = error
                self._progress("", f"no capacity for {_shown(place)}")
        assert missing is not None  # noqa: S101 - there is at least one place
        raise missing

    def _launch_spot(
        self, batch: Sequence[Planned], request: LaunchRequest
    ) -> tuple[list[Instance], list[AwsError]]:
        """Launch spot instances in the first zone of ``request``, and the rest in one other zone.

        Return the instances and the errors of other places.
        """
        made: list[Instance] = []
        errors: list[AwsError] = []
        for places in zones.in_turn(request.places):
            rest = batch[len(made) :]
            wanted = replace(request, places=places, count=len(rest))
            found, failed = self._spot_in(rest, wanted)
            made += found
            errors += failed
            # A placement group is in one zone.
            if len(made) == len(batch) or (made and request.placement_group):
                break
        return made, errors

    def _spot_in(
        self, batch: Sequence[Planned], request: LaunchRequest
    ) -> tuple[list[Instance], list[AwsError]]:
        if not self.context.efa.keys() & {place.instance_type for place in request.places}:
            return self._send(batch, request, self.ec2.run_fleet)
        errors: list[AwsError] = []
        for place in request.places:  # a fleet has the same interfaces for all types
            try:
                return self._run(batch, request, place)
            except (CapacityError, QuotaError) as error:
                errors.append(error)
        return [], errors

    def _run(
        self, batch: Sequence[Planned], request: LaunchRequest, place: Place
    ) -> tuple[list[Instance], list[AwsError]]:
        cards = efa.interfaces(self.context.efa.get(place.instance_type))
        tags = {**request.tags, **names.tags_of_launch(self.name, self._hosts(batch))}
        attempt = replace(request, places=(place,), interfaces=cards, tags=tags)
        return self._send(batch, attempt, lambda wanted: (self.ec2.run(wanted), []))

    def _send(
        self, batch: Sequence[Planned], request: LaunchRequest, ask: Ask
    ) -> tuple[list[Instance], list[AwsError]]:
        return self.sent.send(self._held, self._hosts(batch), request, ask)

    def _hosts(self, batch: Sequence[Planned]) -> list[str]:
        return [plan.host_name(self.name, node.alias, self.template) for node in batch]

    def _named(self, batch: Sequence[Planned], made: Sequence[Instance]) -> dict[str, Instance]:
        """Tag launched instances that have no names yet; return them by the aliases of the plan."""
        hosts = self._hosts(batch)
        found = names.name(self.ec2, self.name, hosts, made)
        self.made += found.values()
        aliases = {host: node.alias for host, node in zip(hosts, batch, strict=True)}
        return {aliases[host]: instance for host, instance in found.items()}


def _shown(place: Place) -> str:
    return f"{place.instance_type} in {place.zone or place.subnet_id or 'this region'}"
