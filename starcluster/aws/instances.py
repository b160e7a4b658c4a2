"""Find, launch, change and terminate instances."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from starcluster.aws import responses
from starcluster.aws.error_table import translate
from starcluster.aws.model import Instance, LaunchRequest, SpotRequest
from starcluster.aws.requests import fleet_arguments, run_arguments, template_data
from starcluster.aws.templates import Templates
from starcluster.errors import AwsError, NotFound
from starcluster.model import TAG_CLUSTER

LIVE = ("pending", "running", "stopping", "stopped")
# AWS needs some time to propagate a new resource: seconds to wait before each retry.
SETTLE_S = (0.5, 1.0, 2.0, 4.0)
# First letters of the error codes for resources that a launch creates just before it needs them.
_MADE_FOR_IT = ("InvalidGroup", "InvalidSecurityGroup", "InvalidPlacementGroup", "InvalidLaunchTem")
# EC2 knows a new instance profile some seconds after IAM.
_PROFILE_SETTLE_S = (1.0, 2.0, 4.0, 8.0, 8.0, 8.0)
_PROFILE = "InvalidParameterValue"
T = TypeVar("T")


class Instances(Templates):
    """Requests about instances."""

    def instances(
        self,
        ids: Sequence[str] = (),
        *,
        cluster: str | None = None,
        states: Iterable[str] = LIVE,
    ) -> list[Instance]:
        """Return instances: of ``ids``, of ``cluster`` (``*`` for any cluster), or all.

        ``states`` does not apply to ``ids``; an unknown id raises NotFound.
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
            raise NotFound(f"no such instance: {id}", "List instances: starcluster listinstances")
        return found[0]

    def run(self, request: LaunchRequest) -> list[Instance]:
        """Launch all instances of ``request`` at its first place, or none."""
        arguments = run_arguments(request)
        answer = _launched(lambda: self.call("ec2", "RunInstances", **arguments))
        return [responses.instance(item) for item in answer["Instances"]]

    def check_run(self, request: LaunchRequest) -> None:
        """Check that AWS would allow :meth:`run`, without launching anything."""
        arguments = run_arguments(request)
        _launched(lambda: self.check_allowed("ec2", "RunInstances", **arguments))

    def run_fleet(self, request: LaunchRequest) -> tuple[list[Instance], list[AwsError]]:
        """Launch wherever the places have capacity, possibly fewer instances than requested.

        AWS chooses places of spot instances by price and capacity, and places of on-demand
        instances by their order. Return the launched instances, and the errors of other places.
        ``request`` names the launch template, which gets a version for this fleet.
        """
        if request.instance_profile:  # a fleet cannot be retried: its errors are in a response
            self.check_run(replace(request, token=""))
        data = template_data(request)
        version = settled(lambda: self.add_version(request.template_id, data), _MADE_FOR_IT)
        arguments = fleet_arguments(request, version)
        answer = settled(lambda: self.call("ec2", "CreateFleet", **arguments), _MADE_FOR_IT)
        errors = [
            translate(
                error.get("ErrorCode", ""),
                error.get("ErrorMessage", ""),
                operation="CreateFleet",
                region=self.region,
            )
            for error in answer.get("Errors", ())
        ]
        # The response is complete; DescribeInstances possibly does not list these instances yet.
        made = [
            responses.instance_of_fleet(id, fleet, request)
            for fleet in answer.get("Instances", ())
            for id in fleet.get("InstanceIds", ())
        ]
        for error in errors:
            if not made and isinstance(error, NotFound) and error.code == _PROFILE:
                raise error
        return made, errors

    def start(self, ids: Sequence[str]) -> None:
        """Start stopped instances."""
        settled(lambda: self.call("ec2", "StartInstances", InstanceIds=list(ids)))

    def stop(self, ids: Sequence[str]) -> None:
        """Stop instances; AWS still bills their EBS volumes."""
        settled(lambda: self.call("ec2", "StopInstances", InstanceIds=list(ids)))

    def reboot(self, ids: Sequence[str]) -> None:
        """Reboot instances."""
        settled(lambda: self.call("ec2", "RebootInstances", InstanceIds=list(ids)))

    def terminate(self, ids: Sequence[str]) -> None:
        """Terminate instances."""
        settled(lambda: self.call("ec2", "TerminateInstances", InstanceIds=list(ids)))

    def tag(self, ids: Sequence[str], tags: Mapping[str, str]) -> None:
        """Set ``tags`` of any resources, even of new ones."""
        wanted = responses.tag_list(tags)
        settled(lambda: self.call("ec2", "CreateTags", Resources=list(ids), Tags=wanted))

    def console(self, id: str) -> str:
        """Return the console output of the instance; empty until AWS has it."""
        answer = self.call("ec2", "GetConsoleOutput", InstanceId=id)
        return str(answer.get("Output") or "")

    def spot_requests(
        self, states: Iterable[str] = ("open", "active"), *, ids: Sequence[str] = ()
    ) -> list[SpotRequest]:
        """Return the spot instance requests in ``states``; if given, only those of ``ids``."""
        filters = as_filters({"state": list(states), "spot-instance-request-id": ids})
        found = self.pages(
            "ec2", "DescribeSpotInstanceRequests", "SpotInstanceRequests", Filters=filters
        )
        return [responses.spot_request(item) for item in found]


def _launched(ask: Callable[[], T]) -> T:
    """Call ``ask``, retrying while AWS has not yet propagated what the launch needs."""
    return settled(lambda: settled(ask, _MADE_FOR_IT), (_PROFILE,), _PROFILE_SETTLE_S)


def settled(
    ask: Callable[[], T],
    codes: tuple[str, ...] = ("",),
    pauses: Sequence[float] | None = None,
) -> T:
    """Call ``ask``, retrying while AWS has not yet propagated a newly created resource.

    Args:
        codes: First letters of the error codes to retry.
        pauses: Seconds before each retry; ``SETTLE_S`` by default.
    """
    for pause in SETTLE_S if pauses is None else pauses:
        try:
            return ask()
        except NotFound as error:
            if not error.code.startswith(codes):
                raise
            time.sleep(pause)
    return ask()


def as_filters(filters: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """Return filters in the form of AWS, without those that have no value."""
    return [{"Name": name, "Values": list(values)} for name, values in filters.items() if values]
