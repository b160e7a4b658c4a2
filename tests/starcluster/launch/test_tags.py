"""``tags``: on all that is created, within the limits of AWS."""

from __future__ import annotations

import re

import pytest

from starcluster.aws.ec2 import Ec2
from starcluster.config import config
from starcluster.config.account import MOST_TAGS
from starcluster.config.account import tags as parsed
from starcluster.errors import InputError
from starcluster.launch.origin import Origin
from starcluster.launch.tags import instance_tags
from tests.starcluster.conftest import Run
from tests.starcluster.front import Front

TAGS = "team=vision, cost-center=47 11"


def test_all_that_a_start_creates_has_the_tags(
    big: Run, front: Front, ec2: Ec2, settings: config.Config
) -> None:
    front.answers |= {"CreatePlacementGroup": ""}
    text = settings.path.read_text()
    settings.path.write_text(text.replace("[cluster big]", "[cluster big]\nplacement_group = on"))
    done = big("start", "-o", "-i", "c5.large", "-b", "1", "--tags", TAGS, "c")
    assert done.returncode == 0, done.stderr
    kinds: set[str] = set()
    for form in front.asked:
        action = form["Action"]
        if not re.match("Create|Run", action) or action == "CreateTags" or "DryRun" in form:
            continue
        found = {
            name.rpartition("TagSpecification")[2].split(".")[1]: value
            for name, value in form.items()
            if name.endswith(".ResourceType")
        }
        tagged = {
            name.rpartition("TagSpecification")[2].split(".")[1]
            for name, value in form.items()
            if value == "47 11" and form[name.replace(".Value", ".Key")] == "cost-center"
        }
        assert tagged == set(found), form
        assert tagged or action == "CreateLaunchTemplateVersion"
        kinds |= set(found.values())
    assert kinds == {
        *("instance", "volume", "network-interface", "spot-instances-request", "fleet"),
        *("security-group", "placement-group", "launch-template"),
    }
    assert [each.tags["team"] for each in ec2.instances(cluster="c")] == ["vision"] * 2


def test_keys_and_volumes_have_the_tags_of_the_default_template(
    big: Run, ec2: Ec2, settings: config.Config
) -> None:
    text = settings.path.read_text().replace("[cluster big]", f"[cluster big]\ntags = {TAGS}")
    settings.path.write_text(f"{text}\n[cluster mistake]\nextends = big\ncluster_size = x\n")
    with_default = "[global]\ndefault_template = mistake\n"
    settings.path.write_text(with_default + settings.path.read_text())
    file = settings.path.parent / "new.pem"
    assert big("createkey", "new", "-o", str(file)).returncode == 0
    assert big("createkey", "import", "-i", str(file)).returncode == 0
    assert big("createvolume", "1", "us-east-1a", "-t", "team=audio", "-n", "d").returncode == 0
    found = ec2.call("ec2", "DescribeTags")["Tags"]
    rows = sorted((tag["ResourceType"], tag["Key"], tag["Value"]) for tag in found)
    assert rows == [
        *[("key-pair", "cost-center", "47 11")] * 2,
        *[("key-pair", "team", "vision")] * 2,
        ("volume", "Name", "d"),
        ("volume", "cost-center", "47 11"),
        ("volume", "team", "audio"),
    ]


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("team", "'team'.*KEY=VALUE"),
        ("=vision", "1 to 128"),
        (f"{'k' * 129}=v", "1 to 128 .*129"),
        (f"k={'v' * 257}", "'k'.* 256 .*257"),
        ("k=a;b", "'a;b'"),
        ("AWS:k=v", "'AWS:k'"),
        ("Name=v", "'Name'"),
        ("starcluster:cluster=other", "'starcluster:cluster'"),
        ("k=1, k=2", "duplicate.*'k'"),
        (", ".join(f"k{number}=v" for number in range(MOST_TAGS + 1)), "43 .*42"),
    ],
)
def test_tags_that_aws_refuses_are_wrong_in_the_config(text: str, fact: str) -> None:
    with pytest.raises(ValueError, match=fact):
        parsed(text)


def test_the_most_tags_fit_unless_the_options_need_more_tags(settings: config.Config) -> None:
    text = ", ".join(f"k{number}={'v' * 256}" for number in range(MOST_TAGS))
    assert len(parsed(f"{'k' * 128}={'v' * 256}, b=, c=a=b")) == 3
    template = settings.template("big", {"tags": text})
    assert len(instance_tags("c", template, Origin(template="big"), "text")) + 3 == 50
    overrides = {"userdata_scripts": "x" * 300}
    with pytest.raises(InputError, match=r"\b51\b.*\b50\b.*\b42\b"):
        instance_tags("c", template, Origin(template="big", overrides=overrides), "text")
