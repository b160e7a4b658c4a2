"""The wheel and the source distribution: what they contain, and that they run."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from spearmint._version import __version__
from tests.sources import ROOT, source_files

PACKAGES = (
    "starmint",
    "starcluster",
    "starcluster_plugins",
    "spearmint",
    "sge_jobs",
    "condor_jobs",
    "pycuda_nn",
)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build both from the files of this checkout, and return their directory."""
    folder = tmp_path_factory.mktemp("dist")
    source = folder / "source"
    for name in source_files():
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
        target.chmod((ROOT / name).stat().st_mode)
    _python("-m", "build", "--no-isolation", "--outdir", str(folder), str(source))
    return folder


def test_a_tag_names_the_version() -> None:
    argv = ["git", "tag", "--points-at", "HEAD", "v*"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("needs a git checkout")
    assert set(done.stdout.split()) <= {f"v{__version__}"}


def test_the_index_accepts_both(dist: Path) -> None:
    files = [str(path) for path in (_wheel(dist), _sdist(dist))]
    _python("-m", "twine", "check", "--strict", *files)


def test_the_wheel_contains_each_file_of_the_packages_and_nothing_else(dist: Path) -> None:
    with zipfile.ZipFile(_wheel(dist)) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert names == {name for name in source_files() if name.split("/")[0] in PACKAGES}


def test_the_source_contains_what_a_build_needs(dist: Path) -> None:
    with tarfile.open(_sdist(dist)) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    needed = {name for name in source_files() if name.split("/")[0] in PACKAGES}
    assert needed | {"pyproject.toml", "README.rst", "LICENSE"} <= names


def test_the_commands_run_from_the_wheel(dist: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.unpack_archive(_wheel(dist), site, "zip")
    for package in ("starcluster", "spearmint", "sge_jobs", "condor_jobs", "pycuda_nn"):
        code = (
            f"import sys; sys.path.insert(0, {str(site)!r}); import {package} as package\n"
            f"print(package.__file__); from {package}.cli import main; main()"
        )
        shown = _python("-c", code, "--help", cwd=tmp_path)
        assert shown.startswith(str(site))
        assert "usage" in shown.lower()


def _wheel(dist: Path) -> Path:
    return next(dist.glob("*.whl"))


def _sdist(dist: Path) -> Path:
    return next(dist.glob("*.tar.gz"))


def _python(*argv: str, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [sys.executable, *argv], capture_output=True, text=True, check=False, cwd=cwd
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
