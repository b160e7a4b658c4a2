"""Drivers by name: built-in, of installed packages, and custom."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spearmint.drivers import DriverSettings, driver_name, driver_names, make_driver
from spearmint.drivers.local import LocalDriver
from spearmint.drivers.sge import SgeDriver
from spearmint.errors import InputError
from spearmint.layout import Layout
from spearmint.store.owner import read_ownership
from tests import commands
from tests.spearmint.conftest import MakeExperiment

MODULE = """
from spearmint.drivers import Driver
from spearmint.drivers.local import LocalDriver
from spearmint.errors import DriverUnreachable


class Theirs(LocalDriver):
    pass


class Unfinished(Driver):
    def submit(self, request):
        pass


class Fails(LocalDriver):
    def __init__(self, settings):
        raise RuntimeError("no licence")


class Silent(LocalDriver):
    def __init__(self, settings):
        raise DriverUnreachable("no answer")


class Stranger:
    pass


function = Theirs
"""


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install a package with a driver, for this process and its child processes."""
    site = tmp_path / "site packages"
    info = site / "theirs-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[spearmint.drivers]\nCluster = theirs_plugin:Theirs\nsge = theirs_plugin:Theirs\n"
        "broken = theirs_plugin:Nothing\n"
    )
    (site / "theirs_plugin.py").write_text(MODULE)
    (site / "fails_plugin.py").write_text("raise RuntimeError('no licence')")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("PYTHONPATH", str(site))
    yield site
    sys.modules.pop("theirs_plugin", None)


@pytest.fixture
def settings(tmp_path: Path) -> DriverSettings:
    return DriverSettings(directory=tmp_path)


def test_names_in_any_case(settings: DriverSettings) -> None:
    assert [driver_name(name) for name in ("LOCAL", "sge", "cluster")] == [
        "local",
        "SGE",
        "Cluster",
    ]
    assert isinstance(make_driver("Local", settings), LocalDriver)
    assert isinstance(make_driver("sge", settings), SgeDriver), "built-in drivers come first"
    assert driver_names()[:2] == ["local", "SGE"]
    assert "Cluster" in driver_names()


@pytest.mark.parametrize("name", ["cluster", "theirs_plugin:Theirs"])
def test_a_driver_of_a_package_knows_what_makes_it_again(settings, name: str) -> None:
    driver = make_driver(name, settings)
    assert type(driver).__name__ == "Theirs"
    assert driver.name == driver_name(name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("pbs", ["'pbs'", "Cluster, HTCONDOR, SGE, SLURM, broken, local", "package.module:Class"]),
        ("locla", ["'locla'", "'local'?"]),
        ("nowhere.at_all:Driver", ["'nowhere'", "nowhere.at_all:Driver", "PYTHONPATH"]),
        ("theirs_plugin:Thiers", ["theirs_plugin ", "'Thiers'", "'Theirs'?"]),
        ("theirs_plugin:Stranger", ["theirs_plugin:Stranger", "spearmint.drivers.Driver"]),
        ("spearmint:region", ["spearmint:region", "spearmint.drivers.Driver"]),
        ("theirs_plugin:Unfinished", ["Unfinished", "adopt, cancel, explain, poll, preview"]),
        ("theirs_plugin:Fails", ["theirs_plugin:Fails", "RuntimeError: no licence"]),
        ("fails_plugin:X", ["module fails_plugin", "RuntimeError: no licence"]),
        ("broken", ["theirs_plugin ", "'Nothing'"]),
        ("theirs_plugin:", ["'theirs_plugin:'", "package.module:Class"]),
    ],
)
def test_what_is_wrong_with_a_driver_is_said(settings, name: str, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        make_driver(name, settings)
    for word in words:
        assert word in str(caught.value)


def test_an_error_of_ours_is_passed_on(settings: DriverSettings) -> None:
    from spearmint.errors import DriverUnreachable

    with pytest.raises(DriverUnreachable, match="no answer"):
        make_driver("theirs_plugin:Silent", settings)


@pytest.mark.parametrize("name", ["cluster", "theirs_plugin:Theirs"])
def test_the_command_searches_and_resumes_with_it(make_experiment: MakeExperiment, name) -> None:
    experiment = make_experiment()
    done = experiment.run(f"--driver={name}", "--max-finished-jobs=1")
    assert done.returncode == 0, done.stderr
    known = read_ownership(Layout(experiment.root))
    assert known is not None
    assert known.driver == driver_name(name)
    done = experiment.run("--max-finished-jobs=2")
    assert driver_name(name) in done.stdout
    assert experiment.command("cleanup", "--yes").returncode == 0


def test_the_installed_command_finds_a_class_in_the_current_directory(
    make_experiment: MakeExperiment,
) -> None:
    experiment = make_experiment()
    (experiment.root / "mine.py").write_text(MODULE)
    command = [str(Path(sys.executable).with_name("spearmint")), "--dry-run", "config.pb"]
    found, missing = (
        subprocess.run(
            [*command, f"--driver=mine:{name}"],
            cwd=experiment.root,
            check=False,
            capture_output=True,
            text=True,
        )
        for name in ("Theirs", "Nobody")
    )
    assert found.returncode == 0, found.stderr
    assert "spearmint.trial.runner" in found.stdout
    assert missing.returncode == 2
    assert "mine" in missing.stderr
    assert "'Nobody'" in missing.stderr
    assert "Traceback" not in missing.stderr


def test_the_help_names_drivers_of_packages() -> None:
    text = " ".join(commands.spearmint("run", "--help").stdout.split())
    assert "package.module:Class" in text
    assert "Cluster" in text


def test_names_alone_import_no_driver() -> None:
    code = (
        "import sys; from spearmint.drivers import driver_name; driver_name('sge');"
        "heavy = {'sge_jobs', 'psutil', 'optuna', 'numpy', 'spearmint.drivers.queue_driver'};"
        "print(heavy & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr
