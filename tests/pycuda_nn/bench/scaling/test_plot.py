from __future__ import annotations

from pathlib import Path
from xml.dom import minidom

from pycuda_nn.bench.scaling.cases import cases_of
from pycuda_nn.bench.scaling.plot import write_plot
from pycuda_nn.bench.scaling.report import OWN, TORCH, Result, ScalingReport, rows_of


def test_a_panel_for_each_network_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    cases = cases_of(["netflix-b1024"], (1, 2))
    results = [Result(engine=OWN, work=case.work, us=float(100 * case.work.gpus)) for case in cases]
    results += [Result(engine=TORCH, work=case.work, error="failed") for case in cases]
    report = ScalingReport(gpus=2, precision="bf16", machine={}, rows=rows_of(cases, results))
    write_plot(tmp_path / "one.svg", report)
    text = (tmp_path / "one.svg").read_text()
    assert minidom.parseString(text).documentElement.tagName == "svg"  # noqa: S318
    for words in ("weak scaling, 1,024 a GPU", "strong scaling, 8,192 in all", "pycuda_nn"):
        assert words in text
    assert "torch DDP" not in text
    write_plot(tmp_path / "two.svg", report)
    assert (tmp_path / "two.svg").read_text() == text
