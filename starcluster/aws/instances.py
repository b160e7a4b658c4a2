"""Instances: those there are, and those to be launched, changed or ended."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from starcluster.aws import responses
from starcluster.aws.client import AwsClient
from starcluster.aws.error_table import translate
from starcluster.aws.model import Instance, LaunchRequest, SpotRequest
from starcluster.aws.requests import fleet_arguments, run_arguments, template_data
from starcluster.errors import AwsError, NotFound
from starcluster.logger import log
from starcluster.model import TAG_CLUSTER

LIVE = ("pending", "running", "stopping", "stopped")
# A resource that was made a moment ago may not be known everywhere in AWS yet: seconds to wait
# before each new try.
SETTLE_S = (0.5, 1.0, 2.0, 4.0)
# What a launch needs and was made for it: the first letters of the codes that say it is not there.
_MADE_FOR_IT = ("InvalidGroup", "InvalidSecurityGroup", "InvalidPlacementGroup", "InvalidLaunchTem")
T = TypeVar("T")


class Instances(AwsClient):
    """Requests about instances."""

    def instances(
        self,
        ids: Sequence[str] = (),
        *,
        cluster: str | None = None,
        states: Iterable[str] = LIVE,
    ) -> list[Instance]:
        """Return instances, those of ``ids`` or of ``cluster`` (``*``: of any cluster) or all.

        Instances of ``ids`` come in whatever state; one that AWS does not know raises NotFound.
        """
        filters: dict[str, Sequence[str]] = {}
        if cluster is not None:
            filters[f"tag:{TAG_CLUSTER}"] = [cluster]
        if not ids:
            filters["instance-state-name"] = list(states)
        arguments: dict[str, Any] = {"Filters": as_filters(filters)} if filters else {}
        if ids:
            arguments["InstanceIds"] = list(ids)
        found = self.pages("ec2", "DescribeInstances", "Reservations", **arguments)
        return [responses.instance(item) for page in found for item in page["Instances"]]

    def instance(self, id: str) -> Instance:
        """Return one instance. Raises NotFound."""
        found = self.instances([id])
        if not found:
            raise NotFound(f"there is no instance {id}", "See: starcluster listinstances")
        return found[0]

    def run(self, request: LaunchRequest) -> list[Instance]:
        """Launch all of ``request`` at its first place, or none."""
        arguments = run_arguments(request)
        answer = settled(lambda: self.call("ec2", "RunInstances", **arguments), _MADE_FOR_IT)
        return [responses.instance(item) for item in answer["Instances"]]

    def check_run(self, request: LaunchRequest) -> None:
        """Ask AWS whether :meth:`run` would be allowed; nothing is launched."""
        self.check_allowed("ec2", "RunInstances", **run_arguments(request))

    def run_fleet(self, request: LaunchRequest) -> tuple[list[Instance], list[AwsError]]:
        """Launch where there is capacity among all places, perhaps fewer than wanted.

        Spot instances by price and capacity, on-demand ones in the order of the places.
        Returns what was launched and why other places were not taken.
        """
        name = f"starcluster-{request.token or secrets.token_hex(8)}"
        template = self.call(
            "ec2",
            "CreateLaunchTemplate",
            LaunchTemplateName=name,
            LaunchTemplateData=template_data(request),
        )["LaunchTemplate"]["LaunchTemplateId"]
        arguments = fleet_arguments(request, template)
        try:
            answer = settled(lambda: self.call("ec2", "CreateFleet", **arguments), _MADE_FOR_IT)
        finally:
            self._forget_template(template)
        ids = [id for fleet in answer.get("Instances", ()) for id in fleet.get("InstanceIds", ())]
        errors = [
            translate(
                error.get("ErrorCode", ""),
                error.get("ErrorMessage", ""),
                operation="CreateFleet",
                region=self.region,
            )
            for error in answer.get("Errors", ())
        ]
        return (settled(lambda: self.instances(ids)) if ids else []), errors

    def _forget_template(self, id: str) -> None:
        """Delete a launch template; one that stays costs nothing, and undoes no launch."""
        try:
            self.call("ec2", "DeleteLaunchTemplate", LaunchTemplateId=id)
        except AwsError as error:
            command = f"aws ec2 delete-launch-template --launch-template-id {id}"
            log.warning("a launch template is left: %s. Delete it: %s", error.what, command)

    def start(self, ids: Sequence[str]) -> None:
        """Start stopped instances."""
        self.call("ec2", "StartInstances", InstanceIds=list(ids))

    def stop(self, ids: Sequence[str]) -> None:
        """Stop instances; their disks go on costing."""
        self.call("ec2", "StopInstances", InstanceIds=list(ids))

    def reboot(self, ids: Sequence[str]) -> None:
        """Reboot instances."""
        self.call("ec2", "RebootInstances", InstanceIds=list(ids))

    def terminate(self, ids: Sequence[str]) -> None:
        """End instances for good."""
        self.call("ec2", "TerminateInstances", InstanceIds=list(ids))

    def tag(self, ids: Sequence[str], tags: Mapping[str, str]) -> None:
        """Set ``tags`` of any resources, also of those made a moment ago."""
        wanted = responses.tag_list(tags)
        settled(lambda: self.call("ec2", "CreateTags", Resources=list(ids), Tags=wanted))

    def wait_instances(self, ids: Sequence[str], state: str, *, limit_s: float) -> None:
        """Wait until all are ``running``, ``stopped`` or ``terminated``. Raises Unreachable."""
        self.wait("ec2", f"instance_{state}", delay_s=5, limit_s=limit_s, InstanceIds=list(ids))

    def console(self, id: str) -> str:
        """Return what the instance wrote to its console; empty until AWS has it."""
        answer = self.call("ec2", "GetConsoleOutput", InstanceId=id)
        return str(answer.get("Output") or "")

    def spot_requests(self, states: Iterable[str] = ("open", "active")) -> list[SpotRequest]:
        """Return the requests for spot instances."""
        filters = as_filters({"state": list(states)})
        found = self.pages(
            "ec2", "DescribeSpotInstanceRequests", "SpotInstanceRequests", Filters=filters
        )
        return [responses.spot_request(item) for item in found]


def settled(ask: Callable[[], T], codes: tuple[str, ...] = ("",)) -> T:
    """Call ``ask``, retrying while AWS has not yet propagated a newly created resource.

    Args:
        codes: First letters of the codes that may pass.
    """
    for pause in SETTLE_S:
        try:
            return ask()
        except NotFound as error:
            if not error.code.startswith(codes):
                raise
            time.sleep(pause)
    return ask()


def as_filters(filters: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """Return filters as AWS takes them; those without a value are left out."""
    return [{"Name": name, "Values": list(values)} for name, values in filters.items() if values]
