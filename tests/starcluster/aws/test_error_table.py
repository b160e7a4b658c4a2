"""AWS errors in plain English with a fix; retries of errors that can pass."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from starcluster.aws import client, endpoint, error_table, instances, prices
from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import LaunchRequest, Place
from starcluster.config import config
from starcluster.config.sections import AwsSettings
from starcluster.errors import (
    AwsError,
    CapacityError,
    CredentialsError,
    NotFound,
    PermissionDenied,
    QuotaError,
    Throttled,
    Unreachable,
)

LAUNCH = LaunchRequest(image_id="ami-1", count=1, places=(Place(instance_type="g5.xlarge"),))
NO_REGIONS = "<DescribeRegionsResponse><regionInfo/></DescribeRegionsResponse>"


class Aws(ThreadingHTTPServer):
    """A server that gives scripted answers, the last one forever, and records requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[tuple[int, str]] = []
        self.asked: list[str] = []
        self.signed: list[str] = []

    def refuse(self, *codes: str, message: str = "So it is.") -> None:
        server = {"RequestLimitExceeded": 503, "Unavailable": 503}
        server["InsufficientInstanceCapacity"] = 500  # like EC2
        self.answers += [
            (
                server.get(code, 400),
                f"<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error>"
                "</Errors><RequestID>1</RequestID></Response>",
            )
            for code in codes
        ]


class Handler(BaseHTTPRequestHandler):
    server: Aws

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self.server.asked.append(self.rfile.read(length).decode())
        self.server.signed.append(self.headers.get("Authorization", ""))
        answers = self.server.answers
        status, body = answers.pop(0) if len(answers) > 1 else answers[0]
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *values: object) -> None:
        pass


@pytest.fixture
def fake() -> Iterator[Aws]:
    with Aws() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def ec2(fake: Aws, client_to: Callable[[str, str], Ec2]) -> Ec2:
    return client_to(f"http://127.0.0.1:{fake.server_address[1]}", "eu-west-1")


@pytest.mark.parametrize(
    ("code", "kind", "fact", "fix"),
    [
        ("InsufficientInstanceCapacity", CapacityError, "", "(-a)"),
        ("VcpuLimitExceeded", QuotaError, "vCPU", "Service Quotas"),
        ("UnauthorizedOperation", PermissionDenied, "RunInstances:", "ec2:RunInstances"),
        ("AuthFailure", CredentialsError, "eu-west-1", "sts get-caller-identity"),
        ("ExpiredToken", CredentialsError, "", "sso login"),
        ("InvalidKeyPair.NotFound", NotFound, "eu-west-1", "createkey"),
        ("InvalidThing.NotFound", NotFound, "", "-r"),
        ("SomethingLimitExceeded", QuotaError, "", "Service Quotas"),
        ("Unheard", AwsError, "AWS", ""),
    ],
)
def test_a_refusal_is_told_with_the_next_step(
    fake: Aws, ec2: Ec2, code: str, kind: type[AwsError], fact: str, fix: str
) -> None:
    fake.refuse(code)
    with pytest.raises(AwsError) as caught:
        ec2.run(LAUNCH)
    assert type(caught.value) is kind
    assert fact in caught.value.what
    assert f": So it is ({code}, RunInstances)" in caught.value.what
    assert fix in caught.value.fix
    assert (caught.value.code, caught.value.operation) == (code, "RunInstances")
    assert len(fake.asked) == 1


def test_every_meaning_can_be_told() -> None:
    for code in error_table.MEANINGS:
        error = error_table.translate(code, "", operation="RunInstances", region="eu-west-1")
        assert "{" not in str(error)
        assert code in error.what


def test_the_permission_that_is_missing_is_named_also_where_it_is_not_the_requests_own() -> None:
    message = (
        "You are not authorized to perform this operation. User: arn:aws:iam::1:user/me is not "
        "authorized to perform: ec2:CreateTags on resource: arn:aws:ec2:us-east-1:1:instance/* "
        "because no identity-based policy allows the ec2:CreateTags action."
    )
    error = error_table.translate(
        "UnauthorizedOperation", message, operation="RunInstances", region="r"
    )
    assert "ec2:CreateTags" in error.fix


def test_what_the_next_zone_may_have_is_no_end_and_other_quotas_are_not_of_vcpus() -> None:
    for code in ("InsufficientFreeAddressesInSubnet", "InsufficientVolumeCapacity"):
        error = error_table.translate(code, "", operation="Op", region="r")
        assert type(error) is CapacityError
    error = error_table.translate(
        "RulesPerSecurityGroupLimitExceeded", "", operation="A", region="r"
    )
    assert "vCPU" not in str(error)


def test_stopped_instances_cannot_go_to_another_zone() -> None:
    code = "InsufficientInstanceCapacity"
    for operation, helps in (("RunInstances", True), ("StartInstances", False)):
        fix = error_table.translate(code, "", operation=operation, region="r").fix
        assert ("(-a)" in fix) is helps
        assert fix


def test_the_blob_of_an_unauthorised_request_is_left_out() -> None:
    message = "You are not allowed. Encoded authorization failure message: " + "x" * 2000
    error = error_table.translate("UnauthorizedOperation", message, operation="Op", region="r")
    assert "You are not allowed" in error.what
    assert len(error.what) < 200


def test_too_many_requests_are_tried_again(fake: Aws, ec2: Ec2) -> None:
    fake.refuse("RequestLimitExceeded", "Unavailable")
    fake.answers.append((200, NO_REGIONS))
    assert ec2.regions() == []
    assert len(fake.asked) == 3


def test_and_told_when_it_does_not_end(
    fake: Aws, ec2: Ec2, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ATTEMPTS", 2)
    fake.refuse("RequestLimitExceeded")
    with pytest.raises(Throttled) as caught:
        ec2.regions()
    assert caught.value.code == "RequestLimitExceeded"
    assert len(fake.asked) == 2


def test_what_was_just_made_may_not_be_known_yet(
    fake: Aws, ec2: Ec2, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instances, "SETTLE_S", (0.0, 0.0))
    fake.refuse("InvalidInstanceID.NotFound")
    fake.answers.append((200, "<CreateTagsResponse><return>true</return></CreateTagsResponse>"))
    ec2.tag(["i-1"], {"Name": "c-master"})
    assert len(fake.asked) == 2
    fake.answers.clear()
    fake.refuse("InvalidInstanceID.NotFound")
    with pytest.raises(NotFound):
        ec2.tag(["i-1"], {"Name": "c-master"})
    assert len(fake.asked) == 5


LAUNCHED = (
    "<RunInstancesResponse><instancesSet><item><instanceId>i-1</instanceId></item></instancesSet>"
    "</RunInstancesResponse>"
)


@pytest.mark.parametrize("code", ["InvalidGroup.NotFound", "InvalidPlacementGroup.Unknown"])
def test_a_launch_waits_until_its_groups_are_known_everywhere(
    fake: Aws, ec2: Ec2, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    monkeypatch.setattr(instances, "SETTLE_S", (0.0, 0.0))
    fake.refuse(code)
    fake.answers.append((200, LAUNCHED))
    assert [instance.id for instance in ec2.run(LAUNCH)] == ["i-1"]
    assert len(fake.asked) == 2


def test_a_fleet_waits_for_its_template_and_asks_for_nothing_that_aws_has_answered(
    fake: Aws, ec2: Ec2, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instances, "SETTLE_S", (0.0, 0.0))
    version = "<R><launchTemplateVersion><versionNumber>2</versionNumber></launchTemplateVersion>"
    fleet = (
        "<R><fleetInstanceSet><item><instanceType>g5.xlarge</instanceType>"
        "<instanceIds><item>i-1</item></instanceIds></item></fleetInstanceSet></R>"
    )
    fake.refuse("InvalidLaunchTemplateId.NotFound")
    fake.answers.append((200, f"{version}</R>"))
    fake.refuse("InvalidLaunchTemplateId.NotFound")
    fake.answers.append((200, fleet))
    found, errors = ec2.run_fleet(replace(LAUNCH, spot=True, template_id="lt-1"))
    assert errors == []
    assert [(each.id, each.type, each.state) for each in found] == [("i-1", "g5.xlarge", "pending")]
    assert found[0].is_spot


def test_a_dry_run_that_passes_is_the_error_of_that_name(fake: Aws, ec2: Ec2) -> None:
    fake.refuse("DryRunOperation", "UnauthorizedOperation")
    ec2.check_run(LAUNCH)
    assert "DryRun=true" in fake.asked[0]
    with pytest.raises(PermissionDenied):
        ec2.check_run(LAUNCH)


def test_an_answer_that_is_none_of_awss(fake: Aws, ec2: Ec2) -> None:
    fake.answers.append((400, "<html>Welcome to Hotel Wifi"))
    with pytest.raises(Unreachable, match=r"(?s)http://127.*DescribeRegions.*aws_proxy"):
        ec2.regions()


def test_no_credentials_at_all(
    client_to: Callable[[str, str], Ec2], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    with pytest.raises(CredentialsError, match="aws configure sso"):
        Ec2(AwsSettings(aws_endpoint_url="http://127.0.0.1:9"), "us-east-1").regions()
    with pytest.raises(CredentialsError, match="nobody"):
        Ec2(AwsSettings(aws_profile="nobody"))


def test_a_log_in_that_is_over_is_told_with_its_profile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "config").write_text(
        "[profile work]\nsso_start_url = https://example.org/start\nsso_region = us-east-1\n"
        "sso_account_id = 123456789012\nsso_role_name = me\nregion = us-east-1\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))  # it has no token
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    ec2 = Ec2(AwsSettings(aws_profile="work", aws_endpoint_url="http://127.0.0.1:1"))
    with pytest.raises(CredentialsError, match="aws sso login --profile work"):
        ec2.regions()


def test_credentials_of_a_file_are_read_anew_when_that_is_wished(
    fake: Aws, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "credentials"
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    text = "[default]\naws_access_key_id = {}\naws_secret_access_key = secret\n"
    file.write_text(text.format("AKIAOLD"))
    address = f"http://127.0.0.1:{fake.server_address[1]}"
    ec2 = Ec2(AwsSettings(aws_endpoint_url=address), "us-east-1")
    fake.answers.append((200, NO_REGIONS))
    ec2.regions()
    file.write_text(text.format("AKIANEW"))
    ec2.open_again()
    ec2.regions()
    assert ["AKIAOLD" in request for request in fake.signed] == [True, False]
    assert "AKIANEW" in fake.signed[1]


def test_where_a_region_comes_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "sa-east-1")
    assert Ec2(AwsSettings(aws_region_name="eu-west-1"), "us-west-2").region == "us-west-2"
    assert Ec2(AwsSettings(aws_region_name="eu-west-1")).region == "eu-west-1"
    assert Ec2(AwsSettings()).region == "sa-east-1"
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    assert Ec2(AwsSettings()).region == "us-east-1"


def test_the_host_of_the_config_is_for_its_own_region() -> None:
    own = AwsSettings(aws_region_name="eu-west-1", aws_region_host="ec2.eu-west-1.amazonaws.com")
    for region, host in (
        ("", "ec2.eu-west-1"),
        ("eu-west-1", "ec2.eu-west-1"),
        ("us-west-2", "ec2.us-west-2"),
    ):
        assert Ec2(own, region).address() == f"https://{host}.amazonaws.com"


def test_addresses_and_proxies_of_the_config() -> None:
    host = AwsSettings(aws_region_host="ec2.cloud", aws_port=8773, aws_is_secure=False)
    assert endpoint.endpoint(host, "ec2") == "http://ec2.cloud:8773"
    assert endpoint.endpoint(host, "ssm") == ""
    assert endpoint.proxies(AwsSettings()) is None
    proxy = AwsSettings(
        aws_proxy="proxy",
        aws_proxy_port=3128,
        aws_proxy_user="me",
        aws_proxy_pass="p@ss",  # noqa: S106  # noqa: S106
    )
    assert endpoint.proxies(proxy) == {
        "http": "http://me:p%40ss@proxy:3128",
        "https": "http://me:p%40ss@proxy:3128",
    }
    assert "p@ss" not in repr(proxy)
    assert config.AwsSettings is AwsSettings


def price_item(dollars: str, unit: str = "Hrs") -> str:
    dimension = {"unit": unit, "pricePerUnit": {"USD": dollars}}
    return json.dumps({"terms": {"OnDemand": {"a": {"priceDimensions": {"b": dimension}}}}})


def test_prices_on_demand(fake: Aws, ec2: Ec2) -> None:
    items = [price_item("0.0000000000"), price_item("1.0060000000"), price_item("9", "Quantity")]
    fake.answers.append((200, json.dumps({"PriceList": items})))
    assert prices.on_demand(ec2, ["g5.xlarge", "g5.xlarge"]) == {"g5.xlarge": 1.006}
    (asked,) = fake.asked
    wanted = {item["Field"]: item["Value"] for item in json.loads(asked)["Filters"]}
    assert (wanted["instanceType"], wanted["regionCode"]) == ("g5.xlarge", "eu-west-1")


def test_a_price_nobody_may_ask_for_is_left_out(fake: Aws, ec2: Ec2) -> None:
    fake.answers.append((400, json.dumps({"__type": "AccessDeniedException", "message": "no"})))
    assert prices.on_demand(ec2, ["g5.xlarge"]) == {}
