"""Launches against EC2's stand-in: what comes of them where AWS gives something else."""

from __future__ import annotations

from typing import Any

import pytest

from starcluster import config, prices
from starcluster.ec2 import Ec2
from starcluster.errors import CapacityError
from starcluster.life import Life
from starcluster.plan import Origin


def no_spot(self: Ec2, request: Any) -> Any:
    return [], [CapacityError("AWS has no such instance free")]


@pytest.fixture
def priced(monkeypatch: pytest.MonkeyPatch) -> None:
    """On demand $1.00 (the larger type $3.00), as spot $0.20; no spot instance is to be had."""
    dollars = {"t3.micro": 1.0, "t3.large": 3.0}
    monkeypatch.setattr(
        prices, "on_demand", lambda ec2, types: {t: dollars[t] for t in types if t in dollars}
    )
    monkeypatch.setattr(prices, "spot", lambda ec2, types: dict.fromkeys(types, 0.2))
    monkeypatch.setattr(Ec2, "run_fleet", no_spot)
    monkeypatch.setattr(Ec2, "placement_groups", lambda self, name: [])  # moto has none


@pytest.mark.usefixtures("priced")
@pytest.mark.parametrize(("cap", "launched"), [("2", 1), ("2.99", 1), ("3", 3)])
def test_what_takes_the_place_of_spot_instances_stays_below_the_cap(
    ec2: Ec2, settings: config.Config, cap: str, launched: int
) -> None:
    overrides = {"cluster_size": "3", "spot_bid": "0.5", "max_hourly_cost": cap}
    life = Life(ec2, settings, "big")
    launcher = life.prepare(
        settings.template("big", overrides),
        Origin(template="big", overrides=overrides),
        check=False,
    )
    if launched == 3:
        life.create(launcher, set_up_too=False)
    else:
        with pytest.raises(CapacityError, match=r"t3\.micro on demand would cost more"):
            life.create(launcher, set_up_too=False)
    assert len(ec2.instances(cluster="big")) == launched


@pytest.mark.usefixtures("priced")
@pytest.mark.parametrize(("cap", "launched"), [("5", []), ("6", ["t3.large"] * 2)])
def test_another_type_stays_below_the_cap_too(
    ec2: Ec2,
    settings: config.Config,
    monkeypatch: pytest.MonkeyPatch,
    cap: str,
    launched: list[str],
) -> None:
    original = Ec2.run

    def none_small(self: Ec2, request: Any) -> Any:
        if request.places[0].instance_type == "t3.micro":
            raise CapacityError("AWS has no such instance free")
        return original(self, request)

    monkeypatch.setattr(Ec2, "run", none_small)
    overrides = {"fallback_instance_types": "t3.large", "max_hourly_cost": cap}
    life = Life(ec2, settings, "big")
    template = settings.template("big", overrides)
    launcher = life.prepare(template, Origin(template="big", overrides=overrides), check=False)
    if launched:
        life.create(launcher, set_up_too=False)
    else:
        with pytest.raises(CapacityError, match="no such instance free"):
            life.create(launcher, set_up_too=False)
    assert [each.type for each in ec2.instances(cluster="big")] == launched
