"""The commands that add missing packages, in each kind of installation."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import starmint

ROOT = Path(starmint.__file__).resolve().parents[1]


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A virtual environment that is not active, by its directories."""
    prefix = tmp_path / "starmint"
    (prefix / "bin").mkdir(parents=True)
    for name in ("python", "pip"):
        (prefix / "bin" / name).write_text("#!/bin/sh\n")
        (prefix / "bin" / name).chmod(0o755)
    monkeypatch.setattr(sys, "prefix", str(prefix))
    monkeypatch.setattr(sys, "executable", str(prefix / "bin/python"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return prefix


def test_the_packages_of_an_extra_are_those_of_pyproject(environment: Path) -> None:
    command = starmint.extra_command("aws")
    assert command == f"{environment}/bin/python -m pip install 'boto3>=1.34' 'paramiko>=3.4'"


def test_an_extra_of_a_requirement_stays() -> None:
    assert "'celery[redis]>=5.4'" in starmint.extra_command("celery")


def test_each_extra_that_the_code_names_exists() -> None:
    named = subprocess.run(
        ["grep", "-rhoE", "extra_command\\(['\"][a-z0-9-]+", *_packages()],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    ).stdout.split()
    extras = {line.partition("(")[2].strip("'\"") for line in named}
    assert {"aws", "report"} <= extras
    assert extras <= set(metadata.metadata("starmint").get_all("Provides-Extra", []))


def test_a_checkout_without_installation_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", missing)
    assert f"{ROOT}[aws]" in starmint.extra_command("aws")


def test_in_an_active_environment_pip_is_enough(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{environment}/bin:{os.environ['PATH']}")
    assert starmint.install_command("pandas") == "pip install pandas"


def test_pip_of_another_python_is_not_named(
    environment: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (environment / "bin/pip").rename(other / "pip")
    monkeypatch.setenv("PATH", f"{other}:{environment}/bin")
    assert starmint.install_command("pandas").endswith("bin/python -m pip install pandas")


def test_pipx_injects(environment: Path) -> None:
    (environment / "pipx_metadata.json").write_text("{}")
    assert starmint.install_command("pandas>=2") == "pipx inject starmint 'pandas>=2'"


def test_environments_without_pip_are_of_uv(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    command = starmint.install_command("pandas")
    assert command == f"uv pip install --python {environment}/bin/python pandas"


def test_a_path_with_spaces_is_quoted(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/a b/bin/python")
    assert starmint.install_command("pandas") == "'/a b/bin/python' -m pip install pandas"


def _packages() -> list[str]:
    below = ["starmint", "starcluster", "starcluster_plugins", "spearmint", "sge_jobs", "pycuda_nn"]
    return [*below, "condor_jobs"]
