"""The kinds of ``[volume]`` sections, and which keys are for which."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from starcluster.config import Kind, config
from starcluster.errors import ConfigError
from starcluster.setup.hooks import volumes_for_plugins
from starcluster.setup.mounts import mount_lines
from starcluster.setup.steps import SetupOptions

HEAD = """
[key k]
key_location = {key}
[cluster c]
keyname = k
cluster_size = 2
node_instance_type = g5.xlarge
volumes = v
[volume v]
mount_path = {path}
"""


def load(folder: Path, keys: str, path: str = "/data/") -> config.Config:
    (folder / "key").touch(mode=0o600)
    (folder / "config").write_text(HEAD.format(key=folder / "key", path=path) + keys)
    (folder / "config").chmod(0o600)
    return config.load(folder / "config", {})


@pytest.mark.parametrize(
    ("keys", "kind", "line"),
    [
        (
            "efs_id = fs-0123abcd\naccess_point = fsap-0123abcd\nmount_options = iam",
            Kind.EFS,
            "efs fs-0123abcd /data - yes rw,accesspoint=fsap-0123abcd,iam v",
        ),
        ("efs_id = fs-0123abcd\ntls = no", Kind.EFS, "efs fs-0123abcd /data - no rw v"),
        ("fsx_id = fs-0123abcd\nread_only = on", Kind.FSX, "fsx fs-0123abcd /data - no ro v"),
        (
            "bucket = my.data\nprefix = /train/one",
            Kind.S3,
            "s3 my.data /data s3://my.data/train/one/ no rw v",
        ),
    ],
)
def test_the_key_of_the_id_says_what_a_volume_is(
    tmp_path: Path, keys: str, kind: Kind, line: str
) -> None:
    template = load(tmp_path, keys).template("c")
    (volume,) = template.volumes
    assert volume.kind is kind
    assert mount_lines([volume]) == line
    assert SetupOptions.of(template).shares == ("/home",)
    assert volumes_for_plugins([volume])["v"][kind.value] == volume.id


def test_homes_on_a_file_system_are_not_shared_by_the_master(tmp_path: Path) -> None:
    template = load(tmp_path, "efs_id = fs-0123abcd", "/home").template("c")
    assert SetupOptions.of(template).shares == ()


@pytest.mark.parametrize(
    ("keys", "path", "fact"),
    [
        ("", "/d", r"\[volume v\] .*volume_id, efs_id, fsx_id, bucket"),
        ("efs_id = fs-0123abcd\nbucket = abc", "/d", "efs_id and bucket"),
        ("efs_id = fs-0123abcd\npartition = 1", "/d", "partition .*EBS.* EFS"),
        ("volume_id = vol-0123abcd\nread_only = on", "/d", "read_only .*EFS.* EBS"),
        ("fsx_id = fs-0123abcd\ntls = on", "/d", "tls .*EFS.* FSx"),
        ("efs_id = fs-0123abcd\ntls = no\naccess_point = fsap-0123abcd", "/d", "tls = true"),
        ("bucket = Data", "/d", "bucket = Data"),
        ("bucket = abc\nprefix = a//b", "/d", "prefix = a//b"),
        ("bucket = abc\nmount_options = a b", "/d", "mount_options = a b"),
        ("bucket = abc", "/home/alice", "/home/alice .*S3"),
    ],
)
def test_keys_that_do_not_fit_are_named(tmp_path: Path, keys: str, path: str, fact: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, keys, path).template("c")
    assert re.search(fact, str(caught.value)), caught.value
