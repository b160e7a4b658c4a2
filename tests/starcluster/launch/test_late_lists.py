"""Lists of AWS that have a part of a cluster, or the tags from before its last change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from starcluster.aws.ec2 import Ec2
from starcluster.cluster import running
from starcluster.cluster.cluster import Cluster, find
from starcluster.cluster.lifecycle import ClusterLifecycle
from starcluster.commands._report import finish
from starcluster.commands.resize import aliases_to_remove
from starcluster.errors import Interrupted, NoInstances, NotTaken, SetupError, Throttled
from starcluster.launch import Origin, plan, wait
from starcluster.launch.claim import claims, current, hold
from starcluster.launch.claim.claims import TAG_DONE
from tests.starcluster.launch.test_slow_aws import (
    module_cloud,
    of_the_cloud,
    operation,
    start,
)
from tests.testbed.hostless import HostlessCloud, without_hosts

__all__ = ["module_cloud", "of_the_cloud"]  # fixtures


@pytest.fixture
def cloud(module_cloud: HostlessCloud) -> Iterator[HostlessCloud]:
    module_cloud.rules()
    with without_hosts(state=module_cloud.state):
        yield module_cloud
    module_cloud.rules()


def hide(
    monkeypatch: pytest.MonkeyPatch, name: str, hides: Callable[[Any], bool], looks: int
) -> None:
    """Leave out what ``hides`` returns True for, in the first ``looks`` lists of ``name``."""
    original = getattr(Ec2, name)
    left = [looks]

    def listed(self: Ec2, *args: Any, **more: Any) -> Any:
        found = original(self, *args, **more)
        if left[0] <= 0 or (args and name == "instances"):
            return found
        left[0] -= 1
        return [each for each in found if not hides(each)]

    monkeypatch.setattr(Ec2, name, listed)


def aliases(cluster: Cluster) -> list[str]:
    return [instance.alias for instance in cluster.instances]


@pytest.mark.parametrize("hidden", [{"master", "node001"}, {"node001"}])
def test_a_cluster_is_found_while_aws_lists_a_part_of_it_and_not_its_claim(
    cloud: HostlessCloud, monkeypatch: pytest.MonkeyPatch, hidden: set[str]
) -> None:
    start(operation(cloud, "part"), 2)
    one = operation(cloud, "part")
    with monkeypatch.context() as patched:
        hide(patched, "instances", lambda each: each.alias in hidden, 3)
        hide(patched, "templates", lambda each: True, 2)
        assert aliases(find(one.ec2, one.config, "part")) == ["master", "node001"]
    one.terminate()


@pytest.mark.parametrize("command", ["terminate", "start"])
def test_a_start_is_not_refused_for_a_claim_that_is_deleted_and_still_listed(
    cloud: HostlessCloud, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    one = operation(cloud, "again")
    held = hold.take(one.ec2, "again", command)
    still = one.ec2.templates("again")
    held.release()
    launcher = one.prepare(one.config.template("small"), Origin(template="small"))
    original = Ec2.templates
    with monkeypatch.context() as patched:
        patched.setattr(claims, "DELETED", set())  # another process has deleted it
        patched.setattr(claims, "has_ended", lambda process: False)
        patched.setattr(Ec2, "templates", lambda ec2, name: [*still, *original(ec2, name)])
        if command == "terminate":
            one.require_new()
        launched = one.create(launcher, set_up_too=False)
    assert launched.failed == {}
    operation(cloud, "again").terminate()
    assert cloud.left("again") == []


def test_a_start_names_the_command_whose_claim_exists(cloud: HostlessCloud) -> None:
    one = operation(cloud, "taken")
    with hold.take(one.ec2, "taken", "terminate"):
        launcher = one.prepare(one.config.template("small"), Origin(template="small"))
        with pytest.raises(NotTaken, match="is being terminated by"):
            one.create(launcher, set_up_too=False)
    assert cloud.left("taken") == []


def test_a_group_without_instances_is_reported_only_after_the_lag(
    cloud: HostlessCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(operation(cloud, "only"), 1)
    one = operation(cloud, "only")
    clock = [0.0]

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    with monkeypatch.context() as patched:
        hide(patched, "instances", lambda each: True, 1000)
        hide(patched, "templates", lambda each: True, 1000)
        patched.setattr(current, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep))
        with pytest.raises(NoInstances):
            find(one.ec2, one.config, "only")
    assert clock[0] >= wait.LAG_S
    one.terminate()


def test_a_list_that_was_requested_before_the_end_of_the_lag_does_not_count(
    cloud: HostlessCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(operation(cloud, "slow"), 2)
    one = operation(cloud, "slow")
    claim = claims.claim_of(one.ec2, "slow")
    assert claim is not None
    claim = replace(claim, aliases=("master",), done_s=0.0)  # as after removing node001
    clock = [0.0]
    original = Ec2.instances

    def slow(ec2: Ec2, *args: Any, **more: Any) -> Any:
        found = original(ec2, *args, **more)
        first = clock[0] == 0.0
        clock[0] += wait.LAG_S + 1
        return found if first else [each for each in found if each.alias == "master"]

    time = SimpleNamespace(monotonic=lambda: clock[0], sleep=lambda seconds: None)
    with monkeypatch.context() as patched:
        patched.setattr(Ec2, "instances", slow)
        patched.setattr(current, "time", time)
        assert [each.alias for each in current.settle(one.ec2, claim)] == ["master"]
        clock[0] = 0.0
        patched.setattr(running, "time", time)
        found = running.listed(one.ec2, "slow", {}, lambda alias, what: None, record=claim)
        assert [each.alias for each in found] == ["master"]
    one.terminate()


def test_an_interrupted_terminate_names_what_aws_does_not_list_yet(
    cloud: HostlessCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(operation(cloud, "cutend"), 2)
    one = operation(cloud, "cutend")

    def cut(*_: Any) -> None:
        hide(monkeypatch, "instances", lambda each: each.alias == "master", 2)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ClusterLifecycle, "_shutdown", cut)
        with pytest.raises(Interrupted) as caught:
            one.terminate()
    assert "2 instances exist (master, node001)" in caught.value.fix
    (claim,) = [claims.claim_of(one.ec2, "cutend")]
    assert claim is not None
    assert (claim.aliases, claim.active) == (("master", "node001"), False)
    operation(cloud, "cutend").terminate()
    assert cloud.left("cutend") == []


def test_removenode_without_names_chooses_among_the_nodes_that_are_left(
    cloud: HostlessCloud,
) -> None:
    start(operation(cloud, "choose"), 3)

    def last(cluster: Cluster) -> list[str]:
        return aliases_to_remove(cluster, None, 1)

    before = operation(cloud, "choose")
    stale = find(before.ec2, before.config, "choose")
    assert operation(cloud, "choose").remove(last) == ["node002"]
    with pytest.raises(NotTaken, match="node002"):  # chosen and confirmed by the user
        operation(cloud, "choose").remove(last(stale))
    assert operation(cloud, "choose").remove(last) == ["node001"]
    assert cloud.live("choose") == ["master"]
    operation(cloud, "choose").terminate()


@pytest.mark.parametrize("took_effect", [True, False])
def test_ctrl_c_while_a_command_replaces_the_claim_leaves_one_that_is_not_active(
    cloud: HostlessCloud, monkeypatch: pytest.MonkeyPatch, took_effect: bool
) -> None:
    name = f"replace{took_effect:d}"
    start(operation(cloud, name), 2)
    one = operation(cloud, name)
    create = Ec2.create_template
    cuts = [1]

    def cut(self: Ec2, *args: Any) -> str:
        if not cuts or took_effect:
            id = create(self, *args)
        if cuts:
            cuts.pop()
            raise KeyboardInterrupt
        return id

    with monkeypatch.context() as patched:
        patched.setattr(Ec2, "create_template", cut)
        with pytest.raises(Interrupted, match="2 instances exist"):
            one.stop()
    claim = claims.claim_of(one.ec2, name)
    assert claim is not None
    assert (claim.aliases, claim.active) == (("master", "node001"), False)
    operation(cloud, name).terminate()
    assert cloud.left(name) == []


def test_a_launch_that_was_throttled_after_a_lost_response_is_reported(
    cloud: HostlessCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Ec2.run

    def throttled(self: Ec2, request: Any) -> Any:
        run(self, request)  # the response of this attempt is lost
        hide(monkeypatch, "instances", lambda each: True, 2)
        raise Throttled("too many requests", code="RequestLimitExceeded")

    with monkeypatch.context() as patched:
        patched.setattr(Ec2, "run", throttled)
        with pytest.raises(Throttled) as caught:
            start(operation(cloud, "many"), 2)
    assert "2 instances exist (master, node001)" in caught.value.fix
    operation(cloud, "many").terminate()
    assert cloud.left("many") == []


def test_a_command_waits_until_aws_lists_the_end_of_the_last_one(
    cloud: HostlessCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(operation(cloud, "oldtags"), 2)
    one = operation(cloud, "oldtags")
    monkeypatch.setattr(claims, "has_ended", lambda process: True)
    originals, looks = Ec2.templates, [2]

    def old_tags(self: Ec2, cluster: str = "*") -> list[Any]:
        looks[0] -= 1
        if looks[0] == 0:  # AWS lists the end now, and node001
            monkeypatch.setattr(Ec2, "instances", instances)
        found = originals(self, cluster)
        if looks[0] < 0:
            return found
        return [replace(each, tags=each.tags | {claims.TAG_ALIASES: ""}) for each in unended(found)]

    def unended(found: list[Any]) -> list[Any]:
        keep = [{key: each.tags[key] for key in each.tags if key != TAG_DONE} for each in found]
        return [replace(each, tags=tags) for each, tags in zip(found, keep, strict=True)]

    instances = Ec2.instances
    hide(monkeypatch, "instances", lambda each: each.alias == "node001", 1000)
    monkeypatch.setattr(Ec2, "templates", old_tags)
    assert aliases(find(one.ec2, one.config, "oldtags")) == ["master", "node001"]
    one.terminate()


def test_a_node_of_a_command_that_was_killed_late_is_waited_for(
    cloud: HostlessCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(operation(cloud, "killedlate"), 2)
    one = operation(cloud, "killedlate")
    last = claims.claim_of(one.ec2, "killedlate")
    assert last is not None
    # The lag from the beginning of the command is over, but not that of its last request.
    killed = replace(last, done_s=None, age_s=wait.LAG_S + 1, process="", command="addnode")
    monkeypatch.setattr(claims, "has_ended", lambda process: not process)
    assert not killed.active
    assert not killed.settled
    assert not killed.settled_in(wait.LAG_S - 1)
    assert killed.settled_in(wait.LAG_S + 1)
    assert not killed.lags(one.ec2.instances(cluster="killedlate"))
    hide(monkeypatch, "instances", lambda each: each.alias == "node001", 2)
    assert [each.alias for each in current.settle(one.ec2, killed)] == ["master", "node001"]
    one.terminate()


def test_a_cluster_can_start_while_aws_lists_the_claim_and_group_of_its_last_one(
    cloud: HostlessCloud,
) -> None:
    start(operation(cloud, "ended"), 1)
    operation(cloud, "ended").terminate()
    cloud.rules(seed=1, lag_s=[5.0, 5.0])  # of the changes before, too
    assert start(operation(cloud, "ended"), 1).ready == ("master",)
    operation(cloud, "ended").terminate()
    assert cloud.left("ended") == []


def test_a_claim_that_was_made_long_before_its_response_is_not_settled_early(
    cloud: HostlessCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end is noted in seconds from its creation."""
    start(operation(cloud, "slowly"), 2)
    create, clock = Ec2.create_template, [0.0]

    def slow(self: Ec2, *args: Any) -> str:
        id = create(self, *args)
        clock[0] += 50.0  # the first response is lost, and botocore sends the request again
        return id

    monkeypatch.setattr(Ec2, "create_template", slow)
    fake = SimpleNamespace(monotonic=lambda: clock[0], sleep=lambda s: None)
    monkeypatch.setattr(hold, "time", fake)
    one = operation(cloud, "slowly")
    with hold.take(one.ec2, "slowly", "addnode", ["node002"], progress=print):
        clock[0] += 5.0
    (template,) = one.ec2.templates("slowly")
    assert float(template.tags[TAG_DONE]) == 55.0
    one.terminate()


def test_spot_nodes_that_aws_terminates_at_once_are_not_offered_for_removal(
    cloud: HostlessCloud,
) -> None:
    start(operation(cloud, "spot"), 2)
    cloud.rules(seed=3, reclaim_s=[0.01, 0.02])
    one = operation(cloud, "spot")
    template = one.config.template("small", {"spot_bid": "0.5"})
    names = [f"node{number:03d}" for number in range(2, 8)]
    outcome = one.add(plan.more_nodes(template, names), template)
    assert outcome.failed
    assert sorted([*outcome.ready, *outcome.failed]) == names
    assert sorted([*outcome.ready, "master", "node001"]) == cloud.live("spot")
    assert one.gone == outcome.failed.keys()
    with pytest.raises(SetupError, match="SpotInstanceTermination") as caught:
        finish("spot", one, outcome, "")
    assert "removenode" not in caught.value.fix
    one.gone.clear()  # as if they were still there
    with pytest.raises(SetupError, match=f"removenode -a .*{min(outcome.failed)}.* spot"):
        finish("spot", one, outcome, "")
    operation(cloud, "spot").terminate()


def test_a_group_that_this_command_has_deleted_is_not_reported(
    cloud: HostlessCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    ec2 = operation(cloud, "refused").ec2
    group = ec2.create_security_group("@sc-refused", vpc=ec2.default_vpc(), description="x")
    late = list(ec2.pages("ec2", "DescribeSecurityGroups", "SecurityGroups", GroupIds=[group]))
    ec2.delete_security_group(group)
    monkeypatch.setattr(Ec2, "pages", lambda *args, **more: iter(late))
    assert ec2.security_groups("@sc-refused") == []
