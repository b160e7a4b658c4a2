"""Launch the instances of a cluster, and remove what was made for them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from starcluster.aws import prices
from starcluster.aws.aliases import packed
from starcluster.aws.ec2 import Ec2
from starcluster.errors import (
    AwsError,
    CapacityError,
    ClusterError,
    ConfigError,
    InputError,
    NotFound,
)
from starcluster.launch import groups, plan
from starcluster.launch.plan import Origin, Planned
from starcluster.launch.preflight import Facts
from starcluster.launch.userdata import TAG_HOST_KEY, new_host_key, user_data
from starcluster.model import (
    TAG_ALIAS,
    TAG_ALIASES,
    TAG_CLUSTER,
    TAG_NAME,
    TAG_VERSION,
    EbsVolume,
    Image,
    Instance,
    LaunchRequest,
    Place,
    Subnet,
    Template,
)
from starcluster.threadpool import ThreadPool, soon

VERSION = "1"
"""Of the tags; another one is not understood."""
TAG_DESCRIPTION = "starcluster:description"
_TAG_LETTERS = 256

PRICES_S = 5.0
_ROUNDING = 1e-6
NAMED_IN_CONSOLE = 32
"""Nodes launched together that get a Name of their own in AWS's console, by a request each."""
Progress = Callable[[str, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What the region has for a template.

    Attributes:
        subnets: In order of preference.
        images: By what the template calls them.
        on_demand, spot: Dollars per hour of each type; types of unknown price are left out.
    """

    vpc: str
    subnets: tuple[Subnet, ...]
    images: Mapping[str, Image]
    offers: Mapping[str, Sequence[str]]
    on_demand: Mapping[str, float] = field(default_factory=dict)
    spot: Mapping[str, float] = field(default_factory=dict)


def survey(
    ec2: Ec2, template: Template, nodes: Sequence[Planned], facts: Facts | None = None
) -> Site:
    """Ask AWS for all that a launch needs; raises for what is not there. Changes nothing.

    Args:
        facts: What is known of it already, and not asked again.
    """
    if template.disable_cloudinit:
        raise ConfigError(
            f"template '{template.name}' has disable_cloudinit",
            "Nodes get their host keys by cloud-init: take an image that has it.",
        )
    names = {each.instance_type for each in nodes}
    types = sorted(names | set(template.fallback_instance_types))
    priced = names if template.max_hourly_cost is None else types
    asked = {
        "subnets": lambda: _subnets(ec2, template, facts),
        "volumes": lambda: _volumes(ec2, template, facts),
        "images": lambda: _images(ec2, {node.image_id for node in nodes}, facts),
        "offers": lambda: facts.offers if facts else ec2.zones_offering(types),
        "on_demand": lambda: _soon(lambda: prices.on_demand(ec2, priced), template),
        "spot": lambda: _soon(
            lambda: prices.spot(ec2, [each.instance_type for each in nodes if each.spot]), template
        ),
    }
    found = dict(zip(asked, ThreadPool().map(lambda ask: _asked(ask), asked.values()), strict=True))
    for value in found.values():
        if isinstance(value, Exception):
            raise value
    vpc, subnets = found["subnets"]
    if zones := {each.zone for each in found["volumes"]}:  # a volume is attached in its zone only
        subnets = [each for each in subnets if each.zone in zones]
        if not subnets:
            raise ConfigError(
                f"the volumes of template '{template.name}' are in {', '.join(sorted(zones))}, "
                "where it has no subnet",
                "Name that zone, or a subnet there.",
            )
    return Site(
        vpc=vpc,
        subnets=tuple(subnets),
        images=found["images"],
        offers=found["offers"],
        on_demand=found["on_demand"],
        spot=found["spot"],
    )


def _asked(ask: Callable[[], object]) -> object:
    try:
        return ask()
    except (AwsError, ConfigError, ClusterError) as error:
        return error


def _soon(ask: Callable[[], Mapping[str, float]], template: Template) -> Mapping[str, float]:
    """Return prices; where they are only for people, without waiting long for them."""
    if template.max_hourly_cost is not None:
        return ask()
    return soon(ask, within_s=PRICES_S, otherwise={})


def _images(ec2: Ec2, names: Iterable[str], facts: Facts | None) -> dict[str, Image]:
    known = facts.images if facts else {}
    return {each: known.get(each) or ec2.image(each) for each in names}


def _volumes(ec2: Ec2, template: Template, facts: Facts | None) -> list[EbsVolume]:
    ids = [each.volume_id for each in template.volumes]
    if facts and all(each in facts.volumes for each in ids):
        return [facts.volumes[each] for each in ids]
    return ec2.volumes(ids) if ids else []


def _subnets(ec2: Ec2, template: Template, facts: Facts | None) -> tuple[str, list[Subnet]]:
    if template.subnet_id:
        found = list(facts.subnets.values()) if facts else ec2.subnets(template.subnet_id)
        vpcs = sorted({each.vpc_id for each in found})
        if len(vpcs) > 1:
            raise ConfigError(
                f"the subnets of template '{template.name}' are of several VPCs: {', '.join(vpcs)}",
                "Nodes must reach one another: name subnets of one VPC.",
            )
        return vpcs[0], plan.ordered_subnets(template, found)
    vpc = ec2.default_vpc()
    ordered = plan.ordered_subnets(template, ec2.subnets(vpc=vpc))
    if not ordered:
        wanted = ", ".join(template.availability_zone) or "any zone"
        raise NotFound(
            f"the default VPC of {ec2.region} has no subnet in {wanted}",
            "See the zones: starcluster listzones; or give subnet_id in the template.",
        )
    return vpc, ordered


class Launcher:
    """Launches nodes of one cluster, for no more than its template's max_hourly_cost."""

    def __init__(
        self,
        ec2: Ec2,
        name: str,
        template: Template,
        origin: Origin,
        site: Site,
        progress: Progress = lambda alias, what: None,
        description: str = "",
    ) -> None:
        self.ec2, self.name, self.template = ec2, name, template
        self._dollars: dict[str, float] = {}  # per hour, by alias
        self._zone = ""
        self.made: list[Instance] = []
        if len(description) > _TAG_LETTERS:
            raise InputError(
                f"the description has {len(description)} letters, a tag holds {_TAG_LETTERS}",
                "Give a shorter one: -d TEXT",
            )
        self._more_tags = {TAG_DESCRIPTION: description} if description else {}
        self.origin, self.site, self._progress = origin, site, progress

    def join(self, *, dollars: float, zone: str) -> None:
        """Take note of nodes that the cluster has already: dollars per hour, and where they are."""
        self._dollars[""], self._zone = dollars, zone

    def check(self, nodes: Sequence[Planned]) -> None:
        """Ask AWS whether it would launch ``nodes``; launches nothing, makes no group."""
        base = self._base("", "")  # with the tags: they need a permission too, or are one
        for batch in plan.batches(nodes):
            request = self._request(batch, base, self.site.subnets)
            self.ec2.check_run(replace(request, group_ids=(), placement_group=""))

    def launch(self, nodes: Sequence[Planned]) -> list[Instance]:
        """Launch ``nodes``; return their instances, all tagged, in the same order.

        Raises:
            CapacityError: Not all could be launched anywhere; those that were are tagged, and
                in :attr:`made`.
        """
        self.made = []
        group = groups.security_group(self.ec2, self.name, self.template, vpc=self.site.vpc)
        placement = groups.placement_group(self.ec2, self.name, self.template)
        base = self._base(group, placement)
        made: dict[str, Instance] = {}
        for node in nodes:
            cost = plan.cost([node], self.site.on_demand, self.site.spot)
            self._dollars[node.alias] = cost.dollars
        for batch in plan.batches(nodes):
            for node in batch:
                self._progress(node.alias, "launching")
            request = self._request(batch, base, self._near(placement))
            made |= self._launch(batch, request)
            self._zone = self._zone or next(iter(made.values())).zone
        return [made[node.alias] for node in nodes]

    def _near(self, placement: str) -> list[Subnet]:
        """Return the subnets, first those near the cluster's first nodes."""
        if placement and self._zone:  # it is in one zone, and a fleet would look in all
            return [each for each in self.site.subnets if each.zone == self._zone]
        # Nodes of one zone reach one another quickly and for free.
        return sorted(self.site.subnets, key=lambda each: each.zone != self._zone)

    def again(self, alias: str) -> Instance:
        """Launch another instance for the node of an alias."""
        planned = {each.alias: each for each in plan.whole_cluster(self.template)}
        short = alias.removeprefix(f"{self.name}-")
        node = planned.get(short) or plan.more_nodes(self.template, [short])[0]
        return self.launch([node])[0]

    def _base(self, group: str, placement: str) -> LaunchRequest:
        """Return what all nodes of a launch have in common, a host key of their own among it."""
        key = new_host_key()
        return LaunchRequest(
            image_id="",
            count=0,
            places=(),
            group_ids=(group,) if group else (),
            user_data=user_data(key, self._scripts()),
            placement_group=placement,
            tags={
                TAG_CLUSTER: self.name,
                TAG_VERSION: VERSION,
                TAG_HOST_KEY: key.public,
                TAG_NAME: self.name,
                **plan.origin_tags(self.origin),
                **self._more_tags,
            },
        )

    def _request(
        self, batch: Sequence[Planned], base: LaunchRequest, subnets: Sequence[Subnet]
    ) -> LaunchRequest:
        image = self.site.images[batch[0].image_id]
        kind = batch[0].instance_type
        where = plan.places(self.template, kind, subnets, self.site.offers)
        if not where:
            zones = ", ".join(self.site.offers.get(kind, ())) or "none"
            raise CapacityError(
                f"no subnet of this cluster is in a zone that offers {kind}; they are: {zones}",
                "Name one with -a, or a subnet there with -N.",
            )
        own = replace(
            base,
            image_id=image.id,
            root_device=image.root_device,
            token=uuid.uuid4().hex,
        )
        return plan.request(batch, where, self.template, own)

    def _launch(self, batch: Sequence[Planned], request: LaunchRequest) -> dict[str, Instance]:
        named: dict[str, Instance] = {}
        if request.spot:
            made, errors = self.ec2.run_fleet(request)
            named = self._named(batch, made)
            if len(made) == request.count:
                return named
            why = f": {errors[0].what}" if errors else ""
            self._progress("", f"{len(batch) - len(made)} not as spot, so on demand{why}")
            batch = batch[len(made) :]
            request = replace(request, spot=False, spot_bid=None, count=len(batch))
        missing: CapacityError | None = None
        for place in request.places:
            if not self._affords(batch, place.instance_type):
                what = f"{place.instance_type} on demand would cost more than max_hourly_cost"
                missing = missing or CapacityError(what, "Raise it, or spot_bid, in the template.")
                continue
            tags = {**request.tags, **self._names(batch)}
            one = replace(request, places=(place,), token=uuid.uuid4().hex, tags=tags)
            try:
                return named | self._named(batch, self.ec2.run(one))
            except CapacityError as error:
                missing = error
                self._progress("", f"no {_shown(place)}")
        assert missing is not None  # noqa: S101 - there is at least one place
        raise missing

    def _affords(self, batch: Sequence[Planned], instance_type: str) -> bool:
        """Tell whether ``batch`` may be launched on demand as another type, and take note."""
        limit = self.template.max_hourly_cost
        price = self.site.on_demand.get(instance_type)
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
        """Return what was launched by the short alias; names those that the launch did not."""
        nodes = {plan.host_name(self.name, node.alias, self.template): node for node in batch}
        there = {each.alias: each for each in made if each.alias in nodes}
        left = [alias for alias in nodes if alias not in there]
        there |= dict(zip(left, (each for each in made if not each.alias), strict=False))

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
        return {nodes[alias].alias: one for alias, one in zip(there, named, strict=True)}

    def _scripts(self) -> dict[str, str]:
        scripts = {}
        for path in self.template.userdata_scripts:
            try:
                scripts[str(path)] = Path(path).read_text()
            except (OSError, UnicodeDecodeError) as error:
                raise ConfigError(f"the user data script {path} cannot be read: {error}") from error
        return scripts


def tags_of_node(cluster: str, alias: str) -> dict[str, str]:
    """Return the tags that make an instance the node ``alias`` of ``cluster``."""
    return {TAG_ALIAS: alias, TAG_NAME: f"{cluster}-{alias.removeprefix(f'{cluster}-')}"}


def _shown(place: Place) -> str:
    return f"{place.instance_type} in {place.zone or place.subnet_id or 'this region'} now"
