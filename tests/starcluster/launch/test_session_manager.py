"""``ssh_via = ssm``: the checks before a launch, what a session gets, the wait for agents."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import Image, Instance
from starcluster.cluster import way
from starcluster.config import Key, NodeType, Template
from starcluster.config.sections import AwsSettings, Permission
from starcluster.config.validate import template_problems
from starcluster.errors import MissingExtra, PermissionDenied, SshError
from starcluster.launch import session_manager
from starcluster.launch.preflight import AwsInventory, InstanceProfile
from starcluster.launch.ssh_access import caller_of, rules_of

ID = "i-0123456789abcdef0"
UBUNTU = Image(id="ami-1", name="ubuntu", state="", architecture="", root_device="")
ROLE = InstanceProfile(name="p", arn="arn", roles=("r",))
OF_AWS = "arn:aws:iam::aws:policy/"


def template(**keys: Any) -> Template:
    given = {"ssh_via": "ssm", "instance_profile": "p"} | keys
    return Template(
        name="t",
        key=Key(name="k", location=Path("k")),
        keyname="k",
        cluster_size=1,
        node_instance_type=(NodeType(instance_type="t3.micro"),),
        **given,
    )


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory on the path, with both programs."""
    for name in ("aws", "session-manager-plugin"):
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    "keys",
    [{"ssh_proxy_jump": "a@b"}, {"ssh_from": ("10.0.0.0/8",)}, {"instance_profile": ""}],
    ids=lambda keys: next(iter(keys)),
)
def test_what_it_excludes_and_needs(keys: dict[str, Any]) -> None:
    assert [key for key, _ in template_problems(template(**keys))] == ["ssh_via"]


def test_no_rule_for_ssh_is_opened() -> None:
    web = Permission(name="web", from_port=80, to_port=80)
    assert list(template_problems(template())) == []
    assert rules_of(template(permissions=(web,)), "203.0.113.5/32") == (web,)
    assert caller_of(None, template(), ()) == ""  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("image", "reference", "problems"),
    [
        ("ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04", "ami-1", 0),
        ("nodes-made-from-debian-12-amd64", "ami-1", 0),
        ("debian-13-arm64-20260101-1", "ami-1", 1),
        ("anything", "/aws/service/debian/release/12/latest/amd64", 1),
    ],
)
def test_images_of_debian_are_refused(
    tools: Path, image: str, reference: str, problems: int
) -> None:
    found = Image(id="ami-1", name=image, state="", architecture="", root_device="")
    inventory = AwsInventory(region="r", images={reference: found})
    keys = [key for key, _ in _problems(None, inventory)]
    assert keys == ["ssh_via"] * problems


@pytest.mark.parametrize(
    ("attached", "inline", "refused"),
    [
        ([], [], True),
        ([f"{OF_AWS}AmazonS3ReadOnlyAccess"], [], True),
        ([f"{OF_AWS}AmazonSSMManagedInstanceCore"], [], False),
        (["arn:aws-cn:iam::aws:policy/AmazonSSMManagedInstanceCore"], [], False),
        (["arn:aws:iam::123456789012:policy/mine"], [], False),
        ([f"{OF_AWS}AmazonS3ReadOnlyAccess"], ["mine"], False),
    ],
)
def test_a_role_that_cannot_let_nodes_register_is_refused(
    tools: Path,
    monkeypatch: pytest.MonkeyPatch,
    attached: list[str],
    inline: list[str],
    refused: bool,
) -> None:
    answers = {
        "ListAttachedRolePolicies": [{"PolicyArn": arn} for arn in attached],
        "ListRolePolicies": inline,
    }
    monkeypatch.setattr(Ec2, "pages", lambda self, service, name, *_, **__: iter(answers[name]))
    inventory = AwsInventory(region="r", images={"ami-1": UBUNTU}, profile=ROLE)
    keys = [key for key, _ in _problems(_ec2(), inventory)]
    assert keys == ["instance_profile"] * refused


def test_who_may_not_ask_about_the_role_is_told(
    tools: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def denied(*_: object, **__: object) -> Any:
        raise PermissionDenied("not allowed: iam:ListAttachedRolePolicies")

    monkeypatch.setattr(Ec2, "pages", denied)
    assert _problems(_ec2(), AwsInventory(region="r", profile=ROLE)) == []
    assert "iam:ListAttachedRolePolicies" in caplog.text


@pytest.mark.parametrize("name", ["aws", "session-manager-plugin"])
def test_a_missing_program_is_named_before_the_launch_and_before_a_session(
    tools: Path, name: str
) -> None:
    (tools / name).unlink()
    ((key, text),) = _problems(None, AwsInventory(region="r"))
    assert key == "ssh_via"
    assert name in text
    with pytest.raises(MissingExtra, match=name):
        way.Agents(_ec2(), [ID]).require(_instance(ID))


def test_credentials_are_in_the_environment_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("[profile another]\naws_access_key_id = AKIAOTHER\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_PROFILE", "another")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of another")
    settings = AwsSettings(
        aws_access_key_id="AKIAMINE",
        aws_secret_access_key="secret-1",  # noqa: S106
        aws_profile="",
        aws_endpoint_url="http://127.0.0.1:1",
        aws_proxy="proxy.example.org",
        aws_proxy_user="u",
        aws_proxy_pass="secret-2",  # noqa: S106
    )
    ec2 = Ec2(settings, "eu-west-1")
    found = way.way_to(ec2, template(), way.Agents(ec2, ()), _instance(ID))
    assert found is not None
    environment = dict(found.environment() or {})
    assert environment["AWS_ACCESS_KEY_ID"] == "AKIAMINE"
    assert "secret-1" in environment["AWS_SECRET_ACCESS_KEY"]
    assert "secret-2" in environment["HTTPS_PROXY"]
    assert {"AWS_PROFILE", "AWS_SESSION_TOKEN"}.isdisjoint(environment)
    assert "secret" not in repr(found)
    line = " ".join(found.argv)
    assert f"--target {ID} " in line
    assert "--document-name AWS-StartSSHSession --parameters portNumber=22" in line
    assert "--region eu-west-1" in line


def test_nodes_are_waited_for_with_few_requests(
    tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    online: dict[str, str] = {"i-1": "ConnectionLost"}
    asked: list[list[str]] = []

    def agents(self: Ec2, ids: list[str]) -> dict[str, str]:
        asked.append(ids)
        return {id: online[id] for id in ids if id in online}

    monkeypatch.setattr(Ec2, "agents", agents)
    known = way.Agents(_ec2(), ["i-1", "i-2"])
    with pytest.raises(SshError, match="i-1 is ConnectionLost"):
        known.require(_instance("i-1"))
    with pytest.raises(SshError, match="i-2 has not registered"):
        known.require(_instance("i-2"))
    assert asked == [["i-1", "i-2"]]
    monkeypatch.setattr(way, "_POLL_S", 0.0)
    known._next = 0.0
    online |= {"i-1": "Online"}
    known.require(_instance("i-1"))
    with pytest.raises(SshError):
        known.require(_instance("i-2"))
    assert asked[1:] == [["i-1", "i-2"], ["i-2"]]


def test_who_may_not_ask_about_agents_is_not_kept_from_the_session(
    tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: object, **__: object) -> Any:
        raise PermissionDenied("no")

    monkeypatch.setattr(Ec2, "agents", denied)
    way.Agents(_ec2(), [ID]).require(_instance(ID))


def _problems(ec2: Ec2 | None, inventory: AwsInventory) -> list[tuple[str, str]]:
    check: Callable[..., Any] = session_manager.session_problems
    return list(check(ec2, template(), inventory))


def _ec2() -> Ec2:
    return Ec2(AwsSettings(aws_access_key_id="x", aws_secret_access_key="x"), "us-east-1")  # noqa: S106


def _instance(id: str) -> Instance:
    return Instance(id=id, state="running", type="t", image_id="a", zone="z", private_ip="10.0.0.9")
