"""listimages --stock: what the SSM parameters of stock images mean today."""

from __future__ import annotations

import json

from starcluster.aws.stock import choices
from starcluster.config.template import DEFAULT_IMAGE
from tests.starcluster.conftest import IMAGE, Run
from tests.starcluster.front import Front

DEBIAN = "/aws/service/debian/release/12/latest/arm64"


def test_the_default_is_a_stock_image_with_the_driver() -> None:
    (default,) = (each for each in choices() if each.default)
    assert default.parameter == DEFAULT_IMAGE
    assert (default.driver, default.architecture) == (True, "x86_64")


def test_each_choice_is_there_for_both_architectures() -> None:
    found = {(each.choice, each.architecture): each.parameter for each in choices()}
    assert len(set(found.values())) == len(found)
    for choice, architecture in found:
        assert {(choice, "x86_64"), (choice, "arm64")} <= set(found)
        other = "arm64" if architecture == "x86_64" else "amd64"
        assert f"/{other}" not in found[choice, architecture]
    assert found["Debian 12", "arm64"] == DEBIAN


def test_the_image_of_each_choice_today(big: Run, front: Front) -> None:
    front.parameters = {DEFAULT_IMAGE: IMAGE, DEBIAN: "ami-0123456789abcdef0"}
    done = big("listimages", "--stock")
    assert done.returncode == 0, done.stderr
    (default,) = (line for line in done.stdout.splitlines() if DEFAULT_IMAGE in line)
    assert IMAGE in default
    assert "(default)" in default
    found = {each["parameter"]: each for each in json.loads(big("li", "-s", "--json").stdout)}
    assert (found[DEFAULT_IMAGE]["id"], bool(found[DEFAULT_IMAGE]["name"])) == (IMAGE, True)
    assert (found[DEBIAN]["id"], found[DEBIAN]["driver"]) == ("ami-0123456789abcdef0", False)
    lacking = [each for each in found.values() if not each["id"]]
    assert len(lacking) == len(found) - 2
    assert done.stdout.count("not in this region") == len(lacking)


def test_stock_images_have_no_filters(big: Run) -> None:
    assert big("listimages", "--stock", "ubuntu*").returncode == 2
