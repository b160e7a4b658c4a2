"""A small config file, and functions that load it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from starcluster.config import config
from starcluster.config.config import Config
from starcluster.errors import ConfigError

BASE = """\
[global]
default_template = small

[aws info]
aws_access_key_id = AKIAFILE
aws_secret_access_key = s3cret#not-a-comment
aws_region_name = eu-west-1

[key mykey]
key_location = ~/mykey.pem   # a comment

[cluster small]
keyname = mykey
cluster_size = 3
node_instance_type = g5.xlarge
"""


def private(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    return path


def load(tmp_path: Path, text: str, environment: Mapping[str, str] | None = None) -> Config:
    return config.load(private(tmp_path / "config", text), environment or {})


def problems(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text).template()
    assert caught.value.exit_code == 2
    return list(caught.value.problems)


def has(text: str, *facts: str) -> bool:
    """Return whether ``text`` contains all ``facts``: names, values, lines, commands."""
    return all(fact in text for fact in facts)
