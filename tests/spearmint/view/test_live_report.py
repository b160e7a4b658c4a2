"""The report at /report of ``-w``: a WSGI application in front of the dashboard."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

import pytest

from spearmint.layout import Layout
from spearmint.store.owner import storage_url
from spearmint.view import live_report
from spearmint.view.live_report import LiveReport
from tests.spearmint.conftest import ONE_FLOAT, MakeExperiment

Get = Callable[[str], tuple[str, str]]


@pytest.fixture
def get(make_experiment: MakeExperiment) -> Get:
    """Return a function that requests a path of a search with two regions and two trials each."""
    experiment = make_experiment(config=f'{ONE_FLOAT} region: "us" region: "eu"')
    done = experiment.run("--max-finished-jobs=2", "--method=random")
    assert done.returncode == 0, done.stderr
    return lambda path: ask(app(experiment.root), path)


def app(directory: Path) -> LiveReport:
    url = storage_url(Layout(directory), None)
    return LiveReport(directory / "config.pb", url, dashboard)


def dashboard(environ: Any, start_response: Any) -> list[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"the dashboard"]


def ask(application: LiveReport, path: str) -> tuple[str, str]:
    """Return the status and the text of the answer."""
    environ: dict[str, Any] = {"SCRIPT_NAME": "", "PATH_INFO": path, "QUERY_STRING": ""}
    setup_testing_defaults(environ)
    started: list[str] = []

    def start(status: str, headers: Any, error: Any = None) -> Any:
        started.append(status)

    answer = validator(application)(environ, start)
    text = b"".join(answer).decode()
    answer.close()  # type: ignore[attr-defined]
    return started[0], text


def test_regions_and_the_page_of_each(get: Get) -> None:
    status, text = get("/report")
    assert status == "200 OK"
    assert 'href="/report/us"' in text
    assert 'href="/report/eu"' in text
    assert "best value" in get("/report/us/")[1]


def test_an_unknown_region_is_not_found(get: Get) -> None:
    status, text = get("/report/asia")
    assert status == "404 Not Found"
    assert "asia" in text
    assert "Traceback" not in text


@pytest.mark.parametrize("path", ["/", "/dashboard", "/reports", "/api/report"])
def test_other_paths_are_of_the_dashboard(get: Get, path: str) -> None:
    assert get(path) == ("200 OK", "the dashboard")


def test_a_page_is_drawn_again_when_it_is_old(
    make_experiment: MakeExperiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = make_experiment()
    assert experiment.run("--max-finished-jobs=1", "--method=random").returncode == 0
    served = app(experiment.root)
    first = ask(served, "/report")
    assert experiment.run("--max-finished-jobs=2", "--method=random").returncode == 0
    monkeypatch.setattr(live_report, "_FRESH_S", 1e9)
    assert ask(served, "/report") == first
    monkeypatch.setattr(live_report, "_FRESH_S", 0.0)
    assert "All complete trials" in first[1]
    assert ask(served, "/report")[1].count("<tr><td>") == first[1].count("<tr><td>") + 1


def test_without_the_libraries_the_command_is_named(
    get: Get, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    status, text = get("/report")
    assert status == "404 Not Found"
    assert "jinja2>=" in text
