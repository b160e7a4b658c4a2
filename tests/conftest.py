"""The environment of every test, and ``--require``, which turns skipped tests into failures."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

# Variables of the user's environment. A test that needs one of them sets it.
_NOT_OURS = (
    *("AWS_", "BOTO", "CLICOLOR", "COLUMNS", "FORCE_COLOR", "JOB_ID", "LANG", "LC_", "LINES"),
    *("MAKE", "MFLAGS", "NO_COLOR", "NSLOTS", "OPTUNA_", "PE_", "PYCUDA_NN_", "PYTHON", "QUEUE"),
    *("SGE_", "SLURM", "SPEARMINT_", "STARCLUSTER_", "SBATCH_", "TASK_ID", "TTY_"),
    *("CONDOR_", "_CONDOR_"),
)
for _name in [name for name in os.environ if name.startswith(_NOT_OURS)]:
    del os.environ[_name]
os.environ |= {"LANG": "C.UTF-8", "TERM": "xterm"}
# Set before numpy is imported, because workers of xdist already share the cores.
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

from hypothesis import HealthCheck, settings  # noqa: E402

from tests.leftovers import ended_if_failed, forget_failed  # noqa: E402
from tests.testbed.cell import Cell  # noqa: E402

# CI runs the same examples every time: a commit must not fail because of a new random example.
# No test fails because a machine is slow or busy.
settings.register_profile(
    "tests",
    derandomize=bool(os.environ.get("CI")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tests")

_RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
_POSTGRESQL = Path("/usr/lib/postgresql")
_NEEDS = {
    "root": lambda: os.geteuid() == 0,
    "celery": lambda: all(map(shutil.which, ("redis-server", "epmd"))) and _RABBITMQ.exists(),
    "browser": lambda: all(shutil.which(name) for name in ("chromium", "chromedriver")),
    "sge": lambda: os.geteuid() == 0 and all(map(shutil.which, ("apt-get", "ip", "setpriv"))),
    "debootstrap": lambda: os.geteuid() == 0 and shutil.which("debootstrap") is not None,
    "htcondor": lambda: os.geteuid() == 0 and all(map(shutil.which, ("debootstrap", "ip"))),
    "slurm": lambda: os.geteuid() == 0 and all(map(shutil.which, ("debootstrap", "ip", "setpriv"))),
    "gpu": lambda: shutil.which("nvidia-smi") is not None,
    "postgresql": lambda: (
        any(_POSTGRESQL.glob("*/bin/initdb")) and find_spec("psycopg") is not None
    ),
    "mount": lambda: os.geteuid() == 0 and shutil.which("mount") is not None,
}


def _lacks(name: str) -> str:
    """Return why a test that needs ``name`` cannot run here."""
    if name == "postgresql" and any(_POSTGRESQL.glob("*/bin/initdb")):
        return "this Python has no psycopg (pip install 'psycopg[binary]')"
    return f"this machine has no {name}"


@functools.cache
def _n_gpus() -> int:
    if shutil.which("nvidia-smi") is None:
        return 0
    found = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    return found.stdout.count("\nGPU") + found.stdout.startswith("GPU")


def _lacks_gpus(item: pytest.Item) -> str | None:
    """Return why a test that needs several GPUs cannot run here, or None."""
    marker = item.get_closest_marker("gpu")
    n = 1 if marker is None else marker.kwargs.get("n", 1)
    return f"this machine has no {n} GPUs" if n > 1 and _n_gpus() < n else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require",
        action="append",
        default=[],
        choices=sorted(_NEEDS),
        help="Fail instead of skip if the machine does not meet the needs of this marker.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make children end on Ctrl-C, which commands in the background of a shell ignore."""
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)


_ON_HOSTS = ("celery", "debootstrap", "htcondor", "mount", "root", "sge", "slurm")


def _check_file_names_markers(item: pytest.Item) -> None:
    """Refuse a test of ``make test-hosts`` in a file that the command would not import."""
    for name in _ON_HOSTS:
        if item.get_closest_marker(name) and f"mark.{name}" not in _text(item.path):
            raise pytest.UsageError(
                f"{item.nodeid} has the marker {name!r} of another file, and make test-hosts "
                f"finds files by their text: write pytest.mark.{name} in {item.path.name}"
            )


@functools.cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if any(map(item.get_closest_marker, _ON_HOSTS)) and not item.get_closest_marker("timeout"):
            # Many daemons and programs start, and the first test can build the hosts' file system
            # or an image, on cores that other workers use, too.
            item.add_marker(pytest.mark.timeout(1200))
        for name, is_there in _NEEDS.items():
            needed = item.get_closest_marker(name) is not None
            if needed and name not in config.getoption("--require") and not is_there():
                item.add_marker(pytest.mark.skip(reason=_lacks(name)))
        if "gpu" not in config.getoption("--require") and (reason := _lacks_gpus(item)):
            item.add_marker(pytest.mark.skip(reason=reason))
        _check_file_names_markers(item)
    # Start with slow tests, so that no worker is left with a long one at the end.
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, None, None]:
    """Keep the open files of a failed test from failing this one."""
    forget_failed()
    yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    """Keep the processes of a failed test from running during the next."""
    with ended_if_failed():
        yield


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep tests away from real accounts."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)


_OF_HOSTS = [Path("/", name) for name in ("var/lib/starcluster", "run/sge_jobs", "etc/starcluster")]


@pytest.fixture(autouse=True, scope="session")
def untouched_machine() -> Iterator[None]:
    """Fail if a test has made a folder that belongs on the hosts of a cluster."""
    before = {path for path in _OF_HOSTS if path.exists()}
    yield
    assert {path for path in _OF_HOSTS if path.exists()} == before


@pytest.fixture(scope="module")
def cell() -> Iterator[Cell]:
    """A real Grid Engine cell: 3 hosts with 2 declared GPUs each; sge-jobs has set it up."""
    with Cell() as made:
        yield made
