"""The example of a config: complete, and valid with and without its comment signs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from starcluster.config import config, edit, schema
from starcluster.config.config import Config
from starcluster.config.example import example
from starcluster.config.sections import GlobalSettings
from starcluster.config.template import Template
from starcluster.setup import load_plugins

ROOT = Path(__file__).parents[3]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for file in (".ssh/mykey.pem", ".starcluster/first-boot.sh"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch(mode=0o600)
    return tmp_path


def load(home: Path, text: str) -> Config:
    edit.write_new(home / "config", text)
    return config.load(home / "config", {})


def uncommented() -> str:
    text = re.sub(r"^#(?=\[|\w+ = )", "", example(), flags=re.MULTILINE)
    # Keys that exclude each other, or that name files that do not exist.
    excluded = "include|subnet_id|capacity_reservation|ssh_via"
    return re.sub(rf"^({excluded}) = .*\n", "", text, flags=re.MULTILINE)


def test_the_file_at_the_root_is_what_the_declarations_give() -> None:
    make = "Run: python -m starcluster.config.example > cluster.config.example"
    assert (ROOT / "cluster.config.example").read_text() == example(), make


def test_it_is_right_as_it_is(home: Path) -> None:
    made = load(home, example())
    for name in ("gpu", "large", "condor", "workers"):
        assert made.template(name).key.location == home / ".ssh/mykey.pem"
    assert made.template().name == "gpu"


@pytest.mark.parametrize(
    ("name", "queue", "last"),
    [
        ("gpu", True, "GpuSge"),
        ("condor", False, "CondorPlugin"),
        ("workers", False, "CeleryWorkers"),
    ],
)
def test_it_has_a_cluster_of_each_queue(home: Path, name: str, queue: bool, last: str) -> None:
    template = load(home, example()).template(name)
    assert template.disable_queue is not queue
    loaded = load_plugins(template.plugins)
    assert type(loaded[-1].setup).__name__ == last
    names = [type(plugin.setup).__name__ for plugin in loaded]
    assert ("ProjectEnv" in names) is not queue  # it installs what the last one needs


def test_it_is_right_with_every_line_in_force(home: Path) -> None:
    template = load(home, uncommented()).template("large")
    assert [volume.name for volume in template.volumes] == ["data"]
    assert template.spot_bid == 0.8


def test_every_key_of_every_section_is_in_it() -> None:
    text = example()
    for kind, keys in schema.SECTIONS.items():
        assert re.search(rf"^#?\[{kind}\b", text, re.MULTILINE), kind
        for key in keys:
            assert re.search(rf"^#?{key} = ", text, re.MULTILINE), key


def test_what_is_set_in_it_is_what_would_be_without(home: Path) -> None:
    template = load(home, example()).template("gpu")
    bare = "[key mykey]\nkey_location = ~/.ssh/mykey.pem\n[cluster gpu]\nkeyname = mykey\n"
    bare += "cluster_size = 3\nnode_instance_type = g5.xlarge\n"
    (home / "config").unlink()
    empty = load(home, bare)
    plain = empty.template("gpu")
    assert empty.globals == GlobalSettings()
    differ = [
        name for name in Template.__slots__ if getattr(plain, name) != getattr(template, name)
    ]
    assert differ == ["plugins"]
