"""Files that StarCluster reads by ConfigParser of Python 2 mean the same here."""

from __future__ import annotations

from pathlib import Path

import pytest

from starcluster.aws.endpoint import endpoint
from starcluster.clustersetup import ClusterSetup
from starcluster.config import Plugin
from starcluster.errors import ConfigError
from starcluster.setup import hooks
from tests.starcluster.config.config_texts import BASE, has, load, private, problems


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    private(tmp_path / "mykey.pem", "key")
    return tmp_path


COMMENTS = """\
; a comment of the old kind
REM so is this
rem
remote = no comment
[plugin p]
setup_class = a.B  ; after a value
url = http://x/y;z#w
REM = a key? no, a comment
"""


def test_comments_of_every_kind(tmp_path: Path) -> None:
    template = load(tmp_path, BASE + "plugins = p\n" + COMMENTS.replace("remote", "# remote"))
    (plugin,) = template.template().plugins
    assert plugin.setup_class == "a.B"
    assert plugin.arguments == {"url": "http://x/y;z#w"}


def test_a_key_that_starts_with_rem_is_not_a_comment(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, BASE + "remote = x\n")
    assert has(found, "remote", "[cluster small]")


def test_the_path_of_an_ec2_api_elsewhere(tmp_path: Path) -> None:
    text = "[aws info]\nAWS_REGION_HOST = cloud.example.org\nAWS_PORT = 8773\n"
    settings = load(tmp_path, text + "AWS_EC2_PATH = /services/Cloud/\n").aws()
    assert endpoint(settings, "ec2") == "https://cloud.example.org:8773/services/Cloud"
    assert endpoint(load(tmp_path, text + "AWS_EC2_PATH = /\n").aws(), "ec2").endswith(":8773")


class Mine(ClusterSetup):
    def __init__(self, num_users: str, downloadKeys: str = "") -> None:  # noqa: N803
        self.given = {"num_users": num_users, "downloadKeys": downloadKeys}


class Open(ClusterSetup):
    def __init__(self, **given: str) -> None:
        self.given = given


@pytest.mark.parametrize("name", ["Mine", "Open"])
def test_arguments_of_plugins_may_be_in_capitals(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "_class", lambda *_: globals()[name])
    text = "[plugin p]\nSETUP_CLASS = a.B\nNUM_USERS = 3\nDOWNLOADKEYS = yes\n"
    plugin = load(tmp_path, text).plugin("p")
    made = hooks.load(plugin, tmp_path)
    other = "downloadKeys" if name == "Mine" else "downloadkeys"
    assert made.given == {"num_users": "3", other: "yes"}  # type: ignore[attr-defined]


def test_an_unknown_argument_in_capitals_is_still_named() -> None:
    plugin = Plugin(
        name="p",
        setup_class="starcluster.plugins.pkginstaller.PackageInstaller",
        arguments={"PACKAGE": "x"},
    )
    with pytest.raises(ConfigError, match="'packages'"):
        hooks.load(plugin)


def test_one_argument_in_two_cases_is_a_duplicate(tmp_path: Path) -> None:
    text = BASE + "[plugin p]\nsetup_class = a.B\nPackages = x\npackages = y\n"
    (found,) = problems(tmp_path, text)
    assert has(found, "duplicate", "packages", ":18", ":19")


PARTITIONS = """\
volumes = home, scratch
[volume home]
VOLUME_ID = vol-0123abcd
MOUNT_PATH = /home
PARTITION = 1
{first}
[volume scratch]
VOLUME_ID = vol-0123abcd
MOUNT_PATH = /scratch
PARTITION = {partition}
{second}
"""


def test_two_partitions_of_one_volume_share_its_device(tmp_path: Path) -> None:
    same = "DEVICE = /dev/sdz"
    text = BASE + PARTITIONS.format(first=same, partition=2, second=same)
    assert len(load(tmp_path, text).template().volumes) == 2


@pytest.mark.parametrize(
    ("first", "partition", "second", "fact"),
    [
        ("", 1, "", "vol-0123abcd, partition = 1 in 2"),
        ("device = /dev/sdy", 2, "device = /dev/sdz", "vol-0123abcd has 2 devices"),
    ],
)
def test_sections_of_one_volume_that_contradict(
    tmp_path: Path, first: str, partition: int, second: str, fact: str
) -> None:
    text = BASE + PARTITIONS.format(first=first, partition=partition, second=second)
    (found,) = problems(tmp_path, text)
    assert fact in found
