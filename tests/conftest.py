"""What every test gets: no real credentials, and skips that can be made failures."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.testbed.cell import Cell

# The same examples in every run of CI: a commit must not fail for an example it did not bring.
# No test fails for a machine that is slow or busy.
settings.register_profile(
    "tests",
    derandomize=bool(os.environ.get("CI")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tests")

_NEEDS = {
    "browser": lambda: all(shutil.which(name) for name in ("chromium", "chromedriver")),
    "sge": lambda: os.geteuid() == 0 and all(map(shutil.which, ("apt-get", "ip", "setpriv"))),
    "gpu": lambda: shutil.which("nvidia-smi") is not None,
    "mount": lambda: os.geteuid() == 0 and shutil.which("mount") is not None,
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require",
        action="append",
        default=[],
        choices=sorted(_NEEDS),
        help="Fail instead of skip where the machine lacks what this marker needs.",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        for name, is_there in _NEEDS.items():
            needed = item.get_closest_marker(name) is not None
            if needed and name not in config.getoption("--require") and not is_there():
                item.add_marker(pytest.mark.skip(reason=f"this machine has no {name}"))
        if item.get_closest_marker("sge"):
            # Daemons of several hosts on a busy machine miss their own time limits now and then;
            # a test that was run again is told as such.
            item.add_marker(pytest.mark.flaky(reruns=2))
    items[:] = _spread(items)


def _spread(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return whole files, those that wait for hosts evenly among the first three quarters.

    Workers take a file after the other: so none of the long ones is left to the end.
    """
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    slow, quick = [], []
    for tests in files.values():
        waits = any(test.get_closest_marker("sge") for test in tests)
        (slow if waits else quick).append(tests)
    places = [(0.75 * at / len(slow), tests) for at, tests in enumerate(slow)]
    places += [(at / len(quick), tests) for at, tests in enumerate(quick)]
    return [test for _, tests in sorted(places, key=lambda place: place[0]) for test in tests]


_FAILED = pytest.StashKey[bool]()
_LIMIT = pytest.StashKey[object]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, Any]:
    report = yield
    if report.failed and item.get_closest_marker("sge"):
        item.session.stash[_FAILED] = True
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    _leave_hosts_of_a_failure(item)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    _leave_hosts_of_a_failure(item)  # of a teardown
    if getattr(item, "execution_count", 1) > 1 and _LIMIT in item.stash:
        # The first failure ended the time limit of all runs.
        item.config.hook.pytest_timeout_set_timer(item=item, settings=item.stash[_LIMIT])


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: object) -> None:
    item.stash[_LIMIT] = settings


def _leave_hosts_of_a_failure(item: pytest.Item) -> None:
    """End every fixture, of modules too: the next run begins on new hosts, whatever is left."""
    if item.session.stash.get(_FAILED, False):
        item.session.stash[_FAILED] = False
        item.config.pluginmanager.getplugin("runner").pytest_runtest_teardown(item, None)


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test reach a real account, nor a storage named in the environment."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.delenv("SPEARMINT_STORAGE", raising=False)


@pytest.fixture(scope="module")
def cell() -> Iterator[Cell]:
    """A real Grid Engine cell: 3 hosts with 2 declared GPUs each, set up by sge-jobs."""
    with Cell() as made:
        yield made
