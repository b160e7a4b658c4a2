from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner

from pycuda_nn.cli.bench import bench
from pycuda_nn.errors import BackendUnavailable


@pytest.mark.parametrize("command", ["mulc", "kernels"])
def test_help_shows_two_lines_to_type(command: str) -> None:
    shown = CliRunner().invoke(bench, [command, "--help"])
    assert shown.exit_code == 0
    assert shown.output.count(f"pycuda-nn bench {command}") == 2


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="this machine has a GPU")
@pytest.mark.parametrize("command", ["mulc", "kernels"])
def test_no_gpu_is_one_clear_line_and_exit_code_2(command: str) -> None:
    result = CliRunner().invoke(bench, [command])
    assert isinstance(result.exception, BackendUnavailable)
    assert result.exception.exit_code == 2
    assert "bench" in str(result.exception)
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["mulc", "--sizes", "1e3,x"], "'1e3,x'"),
        (["mulc", "--sizes", "0"], "'0'"),
        (["mulc", "--sizes", "1e999"], "'1e999'"),
        (["mulc", "--seconds", "0"], "--seconds"),
        (["mulc", "--device", "-1"], "--device"),
        (["kernels", "--operation", "exq"], "'exp'"),
    ],
)
def test_wrong_words(argv: list[str], words: str) -> None:
    result = CliRunner().invoke(bench, argv)
    assert result.exit_code == 2
    assert argv[1] in result.stderr
    assert words in result.stderr


def test_importing_the_commands_costs_no_pycuda() -> None:
    code = (
        "import sys, pycuda_nn.cli.bench, pycuda_nn.bench.tables;"
        "import pycuda_nn.cuda.elementwise.single;"
        "sys.exit(bool({'pycuda', 'cuda', 'nvmath'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.gpu
def test_mulc_on_a_gpu() -> None:
    argv = ["mulc", "--sizes", "1e3,100003", "--seconds", "0.05", "--json"]
    result = CliRunner().invoke(bench, argv)
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert [row["size"] for row in report["rows"]] == [1000, 100003]
    assert all(row["mulc"] > 0 and row["fused_graph"] > 0 for row in report["rows"])
    assert "mulc: 1,000 floats" in result.stderr


@pytest.mark.gpu
def test_kernels_on_a_gpu() -> None:
    argv = ["kernels", "--sizes", "1", "--operation", "mulc", "--operation", "add", "--json"]
    result = CliRunner().invoke(bench, argv)
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["rows"]
    found = [(row["operation"], row["in_place"]) for row in rows]
    assert found == [("mulc", True), ("mulc", False), ("add", True), ("add", False)]
    assert all(row["gb_s"] > 0 and row["copy_gb_s"] > 0 for row in rows)
