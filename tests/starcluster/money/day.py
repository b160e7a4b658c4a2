"""A day of a cluster in a stand-in for EC2 that has its own clock; it holds state."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from xml.sax.saxutils import escape

from tests.starcluster.money.spot_history import SpotHistory

_LISTED_S = 3600  # AWS lists a terminated instance for about an hour


@dataclass
class Machine:
    """One instance."""

    id: str
    alias: str
    type: str
    zone: str
    spot: bool
    made: datetime
    launched: datetime
    state: str = "running"
    ended: datetime | None = None
    lost: bool = False


@dataclass
class Day:
    """Instances of the cluster ``gpu`` at the time ``now``, and spot prices that change."""

    now: datetime
    history: SpotHistory = field(default_factory=SpotHistory)
    machines: list[Machine] = field(default_factory=list)

    def wait(self, hours: float) -> None:
        """Let time pass."""
        self.now += timedelta(hours=hours)

    def launch(self, alias: str, type_: str, zone: str = "us-east-1a", *, spot: bool) -> Machine:
        """Start a new instance."""
        number = f"i-{len(self.machines):017x}"
        self.machines.append(Machine(number, alias, type_, zone, spot, self.now, self.now))
        return self.machines[-1]

    def stop(self, machine: Machine) -> None:
        """Stop an instance."""
        machine.state, machine.ended = "stopped", self.now

    def start(self, machine: Machine) -> None:
        """Restart a stopped instance."""
        machine.state, machine.ended, machine.launched = "running", None, self.now

    def end(self, machine: Machine, *, lost: bool = False) -> None:
        """Terminate an instance, or take a spot instance back."""
        machine.state, machine.ended, machine.lost = "terminated", self.now, lost

    def instances(self, form: dict[str, str]) -> str:
        """Answer DescribeInstances, by the states of its filter."""
        states = {value for key, value in form.items() if ".Value." in key}
        rows = "".join(
            _row(each)
            for each in self.machines
            if each.state in states and not self._is_forgotten(each)
        )
        return f"<reservationSet><item><instancesSet>{rows}</instancesSet></item></reservationSet>"

    def _is_forgotten(self, machine: Machine) -> bool:
        if machine.state != "terminated" or machine.ended is None:
            return False
        return (self.now - machine.ended).total_seconds() > _LISTED_S

    def requests(self, form: dict[str, str]) -> str:
        """Answer DescribeSpotInstanceRequests: they have the end of a lost instance."""
        asked = set(form.values())
        rows = ""
        for each in self.machines:
            if each.lost and each.ended and f"sir-{each.id}" in asked:
                rows += (
                    f"<item><spotInstanceRequestId>sir-{each.id}</spotInstanceRequestId>"
                    "<state>closed</state><status><code>instance-terminated-no-capacity</code>"
                    f"<updateTime>{_time(each.ended)}</updateTime></status></item>"
                )
        return f"<spotInstanceRequestSet>{rows}</spotInstanceRequestSet>"


def _time(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%S.000Z}"


def _row(each: Machine) -> str:
    reason = "" if each.ended is None else f"User initiated ({each.ended:%Y-%m-%d %H:%M:%S} GMT)"
    code = "Client.UserInitiatedShutdown" if each.ended else ""
    if each.lost:
        reason = code = "Server.SpotInstanceTermination"
    spot = (
        "<instanceLifecycle>spot</instanceLifecycle>"
        f"<spotInstanceRequestId>sir-{each.id}</spotInstanceRequestId>"
    )
    cards = (
        "<networkInterfaceSet><item><attachment><deviceIndex>0</deviceIndex>"
        f"<attachTime>{_time(each.made)}</attachTime></attachment></item></networkInterfaceSet>"
    )
    tags = {"starcluster:cluster": "gpu", "starcluster:alias": each.alias}
    items = "".join(
        f"<item><key>{key}</key><value>{escape(value)}</value></item>"
        for key, value in tags.items()
    )
    return (
        f"<item><instanceId>{each.id}</instanceId><imageId>ami-1</imageId>"
        f"<instanceState><name>{each.state}</name></instanceState>"
        f"<instanceType>{each.type}</instanceType><launchTime>{_time(each.launched)}</launchTime>"
        f"<placement><availabilityZone>{each.zone}</availabilityZone></placement>"
        f"<reason>{reason}</reason><stateReason><code>{code}</code></stateReason>"
        f"{spot * each.spot}{cards * (each.state != 'terminated')}<tagSet>{items}</tagSet></item>"
    )
