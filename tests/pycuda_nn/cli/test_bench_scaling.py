from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pycuda_nn.bench.scaling import ScalingReport, Settings
from pycuda_nn.bench.scaling.cases import cases_of
from pycuda_nn.bench.scaling.report import OWN, rows_of
from pycuda_nn.bench.scaling.report import Result as Timed
from pycuda_nn.cli import bench_scaling
from pycuda_nn.cli.bench import bench
from pycuda_nn.errors import DeviceError


def run(*words: str) -> Result:
    return CliRunner().invoke(bench, ["scaling", *words])


class Gpus:
    """A machine with ``count`` GPUs, and the settings that it was asked to measure."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.us: float | None = 100.0
        self.asked: list[Settings] = []

    def measure(self, settings: Settings, say: Any) -> ScalingReport:
        self.asked.append(settings)
        cases = cases_of(settings.networks, settings.counts)
        results = [Timed(engine=OWN, work=case.work, us=self.us, error="x") for case in cases]
        say("one line")
        return ScalingReport(
            gpus=self.count, precision="bf16", machine={}, rows=rows_of(cases, results)
        )


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Gpus:
    machine = Gpus(4)
    monkeypatch.setattr(bench_scaling, "count_gpus", lambda: machine.count)
    monkeypatch.setattr(bench_scaling, "measure", machine.measure)
    backend = type("Backend", (), {"missing": staticmethod(lambda: None)})
    monkeypatch.setattr(bench_scaling, "load", lambda name: backend)
    return machine


def test_help_has_two_examples() -> None:
    shown = run("--help")
    assert shown.exit_code == 0
    assert shown.output.count("pycuda-nn bench scaling --") == 2


@pytest.mark.parametrize(("count", "words"), [(0, ()), (1, ()), (2, ("--gpus", "4"))])
def test_too_few_gpus_fail(gpus: Gpus, count: int, words: tuple[str, ...]) -> None:
    gpus.count = count
    result = run(*words)
    assert isinstance(result.exception, DeviceError)
    assert result.exception.exit_code == 1
    assert f"has {count}" in str(result.exception)
    assert not gpus.asked


def test_all_gpus_and_networks_by_default(gpus: Gpus) -> None:
    assert run().exit_code == 0
    (settings,) = gpus.asked
    assert settings.counts == (1, 2, 4)
    assert len(settings.networks) == 4
    assert not settings.quick


def test_chosen_counts_and_networks(gpus: Gpus) -> None:
    result = run("--gpus", "4", "--networks", "wide-b2048,netflix-b1024", "--quick")
    assert result.exit_code == 0, result.output
    (settings,) = gpus.asked
    assert settings.counts == (1, 4)
    assert settings.networks == ("wide-b2048", "netflix-b1024")
    assert settings.seconds < Settings(
        networks=(), counts=(), engines=(), precision="bf16", quick=False
    ).seconds  # fmt: skip


def test_json_and_plot(gpus: Gpus, tmp_path: Path) -> None:
    file = tmp_path / "scaling.svg"
    result = run("--quick", "--json", "--plot", str(file))
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["rows"][0]["engine"] == OWN
    assert report["rows"][0]["us_a_step"] == 100.0
    assert file.read_text().count("<svg") == 1


def test_a_plot_that_cannot_be_written_does_not_cost_the_times(gpus: Gpus, tmp_path: Path) -> None:
    result = run("--quick", "--plot", str(tmp_path / "missing" / "scaling.svg"))
    assert isinstance(result.exception, OSError)  # the command names the file
    assert "Weak scaling" in result.stdout


def test_nothing_timed_is_a_failure(gpus: Gpus) -> None:
    gpus.us = None
    result = run("--quick")
    assert isinstance(result.exception, DeviceError)
    assert "Weak scaling" in result.stdout


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--gpus", "1"], "'1'"),
        (["--gpus", "two"], "'two'"),
        (["--gpus", "0,2"], "'0,2'"),
        (["--networks", "netflix-b1000"], "netflix-b1024"),
        (["--engine", "jax"], "torch"),
    ],
)
def test_wrong_words(argv: list[str], words: str) -> None:
    result = run(*argv)
    assert result.exit_code == 2
    assert words in result.stderr
