"""The files of a config: includes, permissions, and files that cannot be read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from starcluster.config import config
from starcluster.errors import ConfigError, StarClusterError
from tests.starcluster.config.config_texts import BASE, has, load, private, problems


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    private(tmp_path / "mykey.pem", "key")
    return tmp_path


def test_include_reads_more_files_and_tells_their_lines(tmp_path: Path) -> None:
    (tmp_path / "more dir").mkdir()
    private(tmp_path / "more dir" / "plugins", "[plugin tools]\nsetup_class = a.B\n")
    private(tmp_path / "keys", "[global]\nrefresh_interval = 5\ninclude = config\n[key k]\n")
    text = BASE.replace("[global]", "[global]\ninclude = more dir/plugins, ~/keys, gone")
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text + "plugins = tools\n").template()
    itself, gone, key = caught.value.problems
    assert has(itself, "~/keys:3: include = config: ", "~/config")
    assert has(gone, "~/config:2: include = gone: ", "~/gone")
    assert has(key, "~/keys:4: ", "[key k]", "key_location")
    private(tmp_path / "keys", "[global]\nrefresh_interval = 5\n")
    made = load(tmp_path, text.replace(", gone", "") + "plugins = tools\n")
    assert made.template().plugins[0].setup_class == "a.B"
    assert made.globals.refresh_interval == 5


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620])
def test_a_config_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    file = private(tmp_path / "config", BASE)
    file.chmod(mode)
    with pytest.raises(ConfigError, match=r"chmod 600 ~/config"):
        config.load(file, {})


def test_an_include_that_others_can_read_is_refused(tmp_path: Path) -> None:
    private(tmp_path / "keys", "[key k]\nkey_location = x\n").chmod(0o644)
    found = problems(tmp_path, BASE.replace("[global]", "[global]\ninclude = keys"))
    (problem,) = found
    assert has(problem, "~/config:2: include = keys: ", "chmod 600 ~/keys")


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mykey.pem").chmod(0o644)
    (problem,) = problems(tmp_path, BASE)
    assert has(problem, "~/config:13: key mykey: ", "chmod 600 ~/mykey.pem")
    with pytest.raises(ConfigError, match=r"chmod 600 ~/mykey\.pem"):
        load(tmp_path, BASE).key("mykey")
    (tmp_path / "mykey.pem").unlink()
    (problem,) = problems(tmp_path, BASE)
    assert has(problem, "~/config:13: key mykey: ", "~/mykey.pem")
    assert "chmod" not in problem


def test_without_a_file(tmp_path: Path) -> None:
    empty = config.load(None, {})
    assert empty.aws().aws_region_name == ""
    with pytest.raises(ConfigError, match="starcluster help"):
        empty.template()
    with pytest.raises(ConfigError, match="starcluster -c ~/gone help"):
        config.load(tmp_path / "gone", {})
    with pytest.raises(StarClusterError, match="starcluster -c ~/named help"):
        config.load(None, {"STARCLUSTER_CONFIG": "~/named"})
    private(tmp_path / "named", BASE)
    assert config.load(None, {"STARCLUSTER_CONFIG": "~/named"}).template_names == ["small"]


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_bytes(b"[global]\n\xff\xfe\n")
    file.chmod(0o600)
    with pytest.raises(ConfigError, match=r"~/config: .*0xff"):
        config.load(file, {})
    assert os.access(file, os.R_OK)


@pytest.mark.parametrize("region", ["eu-west-1", "us-gov-west-1", "eusc-de-east-1"])
def test_regions_of_every_partition_are_taken(tmp_path: Path, region: str) -> None:
    path = tmp_path / "config"
    path.touch(mode=0o600)
    path.write_text(f"[aws info]\naws_region_name = {region}\n")
    assert config.load(path, {}).aws().aws_region_name == region
