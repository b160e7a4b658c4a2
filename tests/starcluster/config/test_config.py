"""The config file: values, problems with their lines, extends and the environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from starcluster import config
from starcluster.config import schema
from starcluster.config.parsers import NodeType
from starcluster.config.template import DEFAULT_IMAGE
from starcluster.errors import ConfigError, InputError
from tests.starcluster.config.config_texts import BASE, has, load, private, problems


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    private(tmp_path / "mykey.pem", "key")
    return tmp_path


def test_a_template_has_typed_values_and_defaults(tmp_path: Path) -> None:
    template = load(tmp_path, BASE).template()
    assert template.name == "small"
    assert template.cluster_size == 3
    assert template.key.location == tmp_path / "mykey.pem"
    assert template.node_instance_type == (NodeType(instance_type="g5.xlarge"),)
    assert template.cluster_user == "sgeadmin"
    assert template.root_volume_encrypted is True
    assert template.public_ips is None
    assert template.node_image_id == DEFAULT_IMAGE


EVERY_KEY = """\
master_instance_type = m5.large
master_image_id = ami-0123
node_image_id = ami-4567
cluster_user = alice
cluster_shell = zsh
availability_zone = us-east-1a, us-east-1b
fallback_instance_types = g4dn.xlarge, g6.xlarge
public_ips = no
spot_bid = $0.35
force_spot_master = yes
volumes = data
plugins = tools, tune
permissions = web
userdata_scripts = ~/mykey.pem
disable_queue = 1
disable_cloudinit = on
dns_prefix = TRUE
root_volume_size = 200
root_volume_encrypted = off
placement_group = true
max_hourly_cost = 40

[volume data]
volume_id = vol-0123abcd
mount_path = /data
partition = 1
device = /dev/sdz

[permission web]
from_port = 80
to_port = 80

[plugin tools]
setup_class = starcluster.plugins.pkginstaller.PackageInstaller
packages = htop, tmux
[plugin tune]
SETUP_CLASS = starcluster_plugins.nvidia_tune.NvidiaTune
Clocks = 1,2
"""


SECTIONS_OF_EXAMPLES = """\
[volume data]
volume_id = vol-0123abcd
mount_path = /data
[permission web]
from_port = 80
to_port = 80
[plugin nvidia_tune]
setup_class = starcluster_plugins.nvidia_tune.NvidiaTune
[plugin gpu_sge]
setup_class = starcluster_plugins.gpu_sge.GpuSge
"""


def test_every_key_of_a_cluster_reaches_its_template(tmp_path: Path) -> None:
    (tmp_path / ".starcluster").mkdir()
    (tmp_path / ".starcluster/first-boot.sh").touch()
    # Tested elsewhere: subnet_id excludes availability_zone, capacity_reservation spot_bid, ssh_via
    # ssh_from.
    given = {"extends", "subnet_id", "capacity_reservation", "ssh_via"}
    given |= {"keyname", "cluster_size", "node_instance_type"}  # also in BASE
    keys = [key for key in schema.CLUSTER.values() if key.name not in given]
    lines = "".join(f"{key.name} = {key.example}\n" for key in keys)
    texts = (BASE, BASE + lines + SECTIONS_OF_EXAMPLES)
    small, template = (load(tmp_path, text).template() for text in texts)
    same = [key.name for key in keys if getattr(template, key.name) == getattr(small, key.name)]
    assert same == []


def test_the_values_of_a_template_are_typed(tmp_path: Path) -> None:
    template = load(tmp_path, BASE + EVERY_KEY).template()
    assert template.availability_zone == ("us-east-1a", "us-east-1b")
    assert template.spot_bid == 0.35
    assert template.public_ips is False
    assert template.volumes[0].mount_path == "/data"
    assert template.permissions[0].cidr_ip == "0.0.0.0/0"
    assert template.plugins[0].arguments == {"packages": "htop, tmux"}
    assert template.plugins[1].arguments == {"Clocks": "1,2"}  # case: see the loader
    assert template.plugins[1].setup_class == "starcluster_plugins.nvidia_tune.NvidiaTune"
    assert template.userdata_scripts == (tmp_path / "mykey.pem",)
    assert template.disable_queue
    assert template.disable_cloudinit
    assert template.dns_prefix
    assert template.max_hourly_cost == 40


def test_all_problems_come_at_once_with_file_and_line(tmp_path: Path) -> None:
    text = """\
stray
[global]
default_template = smal
[aws info]
aws_port = many
aws_secret_access_key =
[clutser x]
[key]
[key other]
[volume data]
volume_id = v-1
mount_path = data
[permission web]
from_port = 90
to_port = 80
cidr_ip = 10.0.0.1/8
[plugin tools]
packages = x
[cluster small]
keyname = myky
cluster_size = 0
node_instance_typ = g5.xlarge
spot_bid = 0
spot_bid = 1
volumes = date
no value here
[cluster small]
"""
    found = problems(tmp_path, text)
    lines = {problem.split(":")[1] for problem in found}
    assert all(problem.startswith("~/config:") for problem in found)
    wrong = (1, 3, 5, 7, 8, 9, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27)
    assert lines == {str(line) for line in wrong}
    for line, *facts in (
        (3, "default_template = smal:", "[cluster smal]", "'small'"),
        (5, "aws_port = many:"),
        (7, "[clutser x]", "'cluster'"),
        (9, "[key other]", "key_location"),
        (13, "from_port 90", "to_port 80"),
        (13, "10.0.0.1/8 "),
        (17, "[plugin tools]", "setup_class"),
        (20, "keyname:", "[key myky]"),
        (21, "cluster_size = 0:", " 1"),
        (22, "'node_instance_typ'", "'node_instance_type'"),
        (23, "spot_bid = 0:"),
        (24, "spot_bid", "~/config:23"),
        (25, "volumes:", "[volume date]", "'data'"),
        (26, "'no value here'"),
        (27, "[cluster small]", "~/config:19"),
    ):
        assert any(has(text, f"~/config:{line}: ", *facts) for text in found), line


def test_secrets_are_in_no_problem_and_no_repr(tmp_path: Path) -> None:
    text = BASE.replace("aws_access_key_id = AKIAFILE\n", "")
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text).aws()
    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in repr(load(tmp_path, BASE).aws())


OLD = """[global]
DEFAULT_TEMPLATE=smallcluster
WEB_BROWSER = chromium
ENABLE_EXPERIMENTAL=False
[aws info]
AWS_ACCESS_KEY_ID = #your_aws_access_key_id
AWS_SECRET_ACCESS_KEY = #your_secret_access_key
AWS_USER_ID= #your userid
EC2_CERT = /path/to/your/ec2_cert.pem
AWS_REGION_NAME = eu-west-1
AWS_REGION_HOST = ec2.eu-west-1.amazonaws.com
[keypair mykey]
KEY_LOCATION=~/mykey.pem
[cluster smallcluster]
KEYNAME = mykey
CLUSTER_SIZE = 2
CLUSTER_USER = sgeadmin
DNS_PREFIX = True
NODE_IMAGE_ID = ami-3393a45a
NODE_INSTANCE_TYPE = m1.small
VOLUMES = one, two
SPOT_BID = 0.50
[cluster mediumcluster]
EXTENDS=smallcluster
VOLUMES =
SPOT_BID =
[volume one]
VOLUME_ID = vol-c9999999
MOUNT_PATH = /home
[volume two]
VOLUME_ID = vol-c9999999
MOUNT_PATH = /scratch
PARTITION = 2
"""


def test_a_config_of_the_original_is_read_as_it_is(tmp_path: Path) -> None:
    made = load(tmp_path, "\ufeff" + OLD.replace("\n", "\r\n"))
    template = made.template()
    assert (template.name, template.dns_prefix, template.spot_bid) == ("smallcluster", True, 0.5)
    assert [volume.partition for volume in template.volumes] == [None, 2]
    assert (made.aws().aws_access_key_id, made.aws().aws_user_id) == ("", "")
    assert made.aws().aws_region_host == "ec2.eu-west-1.amazonaws.com"


def test_a_key_without_a_value_has_its_default_again(tmp_path: Path) -> None:
    medium = load(tmp_path, OLD).template("mediumcluster")
    assert (medium.volumes, medium.spot_bid, medium.dns_prefix) == ((), None, True)
    (problem,) = problems(tmp_path, BASE.replace("= mykey", "="))
    assert problem.startswith("~/config:13: keyname = :")


def test_a_broken_template_keeps_nobody_from_aws(tmp_path: Path) -> None:
    made = load(tmp_path, BASE + "cluster_sise = 3\n")
    assert made.aws().aws_region_name == "eu-west-1"
    with pytest.raises(ConfigError, match="cluster_sise"):
        made.template()


def test_extends_takes_what_is_not_its_own(tmp_path: Path) -> None:
    text = BASE + "spot_bid = 1\n[cluster big]\nextends = mid\ncluster_size = 9\n"
    text += "[cluster mid]\nextends = small\nspot_bid = 2\n"
    big = load(tmp_path, text).template("big")
    assert (big.cluster_size, big.spot_bid, big.keyname) == (9, 2, "mykey")


def test_what_others_extend_need_not_be_whole(tmp_path: Path) -> None:
    text = BASE + "[cluster base]\nspot_bid = 1\n[cluster big]\nextends = base\nkeyname = mykey\n"
    text += "cluster_size = 2\nnode_instance_type = g5.xlarge\n"
    assert load(tmp_path, text).template("big").spot_bid == 1
    with pytest.raises(ConfigError, match=r"cluster_size.*\[cluster base\]"):
        load(tmp_path, text).template("base")


def test_extends_in_a_circle_is_told_once_per_line(tmp_path: Path) -> None:
    text = BASE + "[cluster a]\nextends = b\n[cluster b]\nextends = c\n[cluster c]\nextends = a\n"
    found = [problem for problem in problems(tmp_path, text) if " -> " in problem]
    assert found
    assert "a -> b -> c -> a" in found[0]
    assert len(found) == len({problem.split(": ")[0] for problem in found})
    (own,) = problems(tmp_path, BASE + "extends = small\n")
    assert has(own, "~/config:16: extends", ": small -> small")
    assert has(problems(tmp_path, BASE + "extends = smal\n")[0], "extends = smal:", "'small'")


def test_the_environment_has_the_last_word(tmp_path: Path) -> None:
    made = load(tmp_path, BASE, {"AWS_REGION_NAME": "us-west-2", "AWS_PORT": "99"})
    assert made.aws().aws_region_name == "us-west-2"
    assert made.aws().aws_port == 99
    assert made.aws().aws_secret_access_key.endswith("#not-a-comment")
    with pytest.raises(ConfigError, match="environment AWS_PORT: aws_port = x"):
        load(tmp_path, BASE, {"AWS_PORT": "x"}).aws()


def test_credentials_are_never_half_of_the_environment(tmp_path: Path) -> None:
    aws = load(tmp_path, BASE, {"AWS_PROFILE": "work"}).aws()
    assert (aws.aws_profile, aws.aws_access_key_id, aws.aws_secret_access_key) == ("work", "", "")
    with pytest.raises(ConfigError, match=r"aws_access_key_id .*aws_secret_access_key"):
        load(tmp_path, BASE, {"AWS_ACCESS_KEY_ID": "AKIAENV"}).aws()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("c1.xlarge:2, g5.xlarge", [("c1.xlarge", "", 2), ("g5.xlarge", "", None)]),
        (
            "c1.xlarge:ami-1:3,m5.large:ami-2",
            [("c1.xlarge", "ami-1", 3), ("m5.large", "ami-2", None)],
        ),
        ("m5.large:/aws/service/x", [("m5.large", "/aws/service/x", None)]),
    ],
)
def test_a_list_of_types(
    tmp_path: Path, value: str, expected: list[tuple[str, str, int | None]]
) -> None:
    text = BASE.replace("= g5.xlarge", f"= {value}").replace("size = 3", "size = 9")
    found = load(tmp_path, text).template().node_instance_type
    assert [(item.instance_type, item.image_id, item.count) for item in found] == expected


@pytest.mark.parametrize(
    ("value", "facts"),
    [
        ("g5.xlarge, m5.large", (" = g5.xlarge, m5.large: ", "g5.xlarge:2")),
        ("g5.xlarge:2", (" = g5.xlarge:2: ", "'g5.xlarge:2'")),
        ("g5.xlarge:0, m5.large", ("'g5.xlarge:0'", " 1")),
        ("g5.xlarge:a:b:1, m5.large", ("'g5.xlarge:a:b:1'", "type:image:n")),
        ("g5", (" = g5: ", "g5.xlarge")),
        ("g5.xlarge:3, m5.large", (" 3 nodes", "cluster_size ", " 3:")),
        (",", (" = ,: ",)),
    ],
)
def test_a_wrong_list_of_types(tmp_path: Path, value: str, facts: tuple[str, ...]) -> None:
    (found,) = problems(tmp_path, BASE.replace("= g5.xlarge", f"= {value}"))
    assert found.startswith("~/config:15: node_instance_type")
    assert has(found, *facts)


def test_types_of_master_and_nodes(tmp_path: Path) -> None:
    text = BASE.replace("= g5.xlarge", "= c1.xlarge:ami-1:1, g5.xlarge").replace(
        "size = 3", "size = 4"
    )
    template = load(tmp_path, text + "node_image_id = ami-0\n").template()
    assert template.type_of_master() == NodeType(instance_type="g5.xlarge", image_id="ami-0")
    nodes = [(node.instance_type, node.image_id) for node in template.types_of_nodes()]
    assert nodes == [("c1.xlarge", "ami-1"), ("g5.xlarge", "ami-0"), ("g5.xlarge", "ami-0")]


def test_options_override_and_are_named_in_problems(tmp_path: Path) -> None:
    private(tmp_path / "other.pem", "key")
    made = load(tmp_path, BASE)
    options = {"cluster_size": "7", "keyname": "theirs", "key_location": "~/other.pem"}
    template = made.template("small", options)
    assert template.cluster_size == 7
    assert (template.key.name, template.key.location) == ("theirs", tmp_path / "other.pem")
    with pytest.raises(ConfigError) as caught:
        made.template("small", {"cluster_size": "x", "keyname": "gone"})
    size, key = caught.value.problems
    assert size.startswith("command line: cluster_size = x: ")
    assert has(key, "command line: keyname: ", "[key gone]")


@pytest.mark.parametrize(
    ("more", "facts"),
    [
        ("force_spot_master = true", (":16: force_spot_master: ", "spot_bid")),
        ("cluster_user = root", (":16: cluster_user: root",)),
        ("cluster_user = Alice", (":16: cluster_user = Alice: ",)),
        (
            "subnet_id = subnet-1\navailability_zone = us-east-1a",
            (":17: availability_zone: ", "subnet_id"),
        ),
        ("userdata_scripts = ~/none.sh", (":16: userdata_scripts: ", "~/none.sh")),
        (
            "volumes = v\n[volume v]\nvolume_id = vol-0123abcd\nmount_path = /usr/",
            (":16: volumes: v: mount_path = /usr/ ",),
        ),
        (
            "volumes = v, w\n[volume v]\nvolume_id = vol-0123abcd\nmount_path = /d\n"
            "[volume w]\nvolume_id = vol-0123abce\nmount_path = /d",
            (":16: volumes: ", "mount_path = /d ", " 2 "),
        ),
    ],
)
def test_values_that_do_not_fit_together(tmp_path: Path, more: str, facts: tuple[str, ...]) -> None:
    (found,) = problems(tmp_path, BASE + more + "\n")
    assert has(found, *facts)


def test_a_longer_line_goes_on_when_it_is_indented_further(tmp_path: Path) -> None:
    text = BASE + "plugins = a,\n    b\n[plugin a]\n  setup_class = a.B\n  x = 1\n"
    text += "[plugin b]\nsetup_class: c.D\n"
    template = load(tmp_path, text).template()
    assert [plugin.name for plugin in template.plugins] == ["a", "b"]
    assert template.plugins[0].arguments == {"x": "1"}


def test_a_config_without_templates_and_a_directory_have_a_fix(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"0 cluster templates.*\n.*\[cluster NAME\]"):
        load(tmp_path, "[global]\n").template()
    with pytest.raises(ConfigError, match="directory"):
        config.load(tmp_path, {})


def test_a_pipe_is_not_called_missing(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    with pytest.raises(ConfigError, match="not a regular file"):
        config.load(pipe)


def test_the_template_taken_without_a_name(tmp_path: Path) -> None:
    alone = BASE.replace("default_template = small\n", "")
    assert load(tmp_path, alone).template().name == "small"
    with pytest.raises(ConfigError, match=r"(?s)~/config .*2 .*default_template.*-c: "):
        load(tmp_path, alone + "[cluster two]\nextends = small\n").template()
    with pytest.raises(InputError, match="'small'"):
        load(tmp_path, BASE).template("smal")


def test_keys_and_plugins_by_name(tmp_path: Path) -> None:
    made = load(tmp_path, BASE + "[plugin tools]\nsetup_class = a.B\n[plugin bad]\n")
    assert made.key("mykey").location == tmp_path / "mykey.pem"
    assert made.plugin("tools").setup_class == "a.B"
    with pytest.raises(ConfigError, match="'tools'"):
        made.plugin("tool")
    with pytest.raises(ConfigError, match=r"(?s)'bad'.*setup_class.*\[plugin bad\]"):
        made.plugin("bad")
    with pytest.raises(ConfigError, match="starcluster createkey zzz"):
        made.key("zzz")
