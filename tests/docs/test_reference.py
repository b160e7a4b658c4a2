"""Exit codes, environment variables and files on the reference pages are those of the code."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import pycuda_nn as nn
from pycuda_nn.cli.main import main as pycuda_nn_main
from spearmint.layout import Layout, TrialFolder
from starcluster.balance.stats.rows import Row
from starcluster.config.sections import AwsSettings
from starcluster.errors import StarClusterError
from tests.commands import run, spearmint

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
PACKAGES = (
    "spearmint",
    "starcluster",
    "starcluster_plugins",
    "sge_jobs",
    "condor_jobs",
    "pycuda_nn",
)
VARIABLE = re.compile(
    r"(?:SPEARMINT|STARCLUSTER|CONDOR_JOBS|PYCUDA_NN|SGE|AWS|CUDA|XDG|OMP|OPENBLAS|MKL)_[A-Za-z_]+"
    r"|PYTHONPATH|PYTHONUNBUFFERED|PYTHONFAULTHANDLER|JOB_ID|NSLOTS"
)
CONFIG = """\
language: PYTHON
name:     "net"
variable { name: "x"  type: FLOAT  min: 0  max: 1 }
"""


def page(name: str) -> str:
    return (REFERENCE / f"{name}.rst").read_text(encoding="utf-8")


def variables_of(package: str) -> Iterator[str]:
    """Yield the names of environment variables among the texts of a package."""
    for path in (ROOT / package).rglob("*.py"):
        if "testing" not in path.parts:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                text = node.value if isinstance(node, ast.Constant) else None
                if isinstance(text, str) and VARIABLE.fullmatch(text):
                    yield text
    for path in [*(ROOT / package).rglob("*.sh"), *(ROOT / package).rglob("gpu-s*")]:
        yield from re.findall(r"\$\{?(SGE_JOBS_\w+)", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("package", PACKAGES)
def test_every_environment_variable_is_documented(package: str) -> None:
    text = page("environment")
    assert not sorted({name for name in variables_of(package) if f"``{name}" not in text})


def test_every_key_of_aws_has_its_variable() -> None:
    text = page("environment")
    assert not [f.name for f in fields(AwsSettings) if f"``{f.name.upper()}``" not in text]


def test_every_variable_of_the_page_is_in_the_code() -> None:
    sources = "".join(
        path.read_text(encoding="utf-8", errors="replace")
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.suffix in {".py", ".sh"} or path.name in {"gpu-starter", "gpu-sensor"}
    )
    sources += " ".join(field.name.upper() for field in fields(AwsSettings))
    elsewhere = {"AWS_DEFAULT_REGION"}  # boto3 reads it
    named = set(re.findall(r"``([A-Z][A-Z0-9]*_[A-Z_]+)``", page("environment")))
    assert len(named) > 30
    assert not sorted(name for name in named - elsewhere if name not in sources)


@pytest.mark.parametrize("owner", [Layout, TrialFolder])
def test_every_file_of_a_search_is_documented(owner: type) -> None:
    layout = Layout(Path("root"), "").folder(7) if owner is TrialFolder else Layout(Path("root"))
    text = page("files")
    names = [name for name, value in vars(owner).items() if isinstance(value, property)]
    paths = [getattr(layout, name) for name in names if name != "base"]
    assert len(paths) > 5
    assert not [path.name for path in paths if path.name not in text]


def test_the_formats_of_a_search_are_those_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "config.pb").write_text(CONFIG)
    code = "def main(job_id, params):\n    if job_id == 2: raise ValueError('no')\n    return 1.0\n"
    (tmp_path / "net.py").write_text(code)
    spearmint("--method=RandomChooser", "--max-finished-jobs=2", tmp_path)
    text = page("files")
    for file in ("trial.json", "result.json", "runner.json"):
        entry = text.split(f"\n``{file}``\n")[1].split("\n``")[0]
        data = json.loads((tmp_path / "jobs" / "00000001" / file).read_text())
        assert not [key for key in data if f'"{key}"' not in entry], file
    entry = text.split("\n``result.json``\n")[1].split("\n``")[0]
    failed = json.loads((tmp_path / "jobs" / "00000002" / "result.json").read_text())
    assert not [key for key in failed if f'"{key}"' not in entry and f"``{key}``" not in entry]
    owner = json.loads((tmp_path / ".spearmint" / "experiment.json").read_text())
    assert not [key for key in owner if f"``{key}``" not in text]
    trace = (tmp_path / "trace.csv").read_text().splitlines()
    assert {len(line.split(",")) for line in trace} == {6}
    status = json.loads(spearmint("status", "--json", tmp_path).stdout)
    section = text.split("spearmint status --json\n")[1].split("spearmint export --csv")[0]
    assert not [key for key in [*status, *status["best"]] if f'"{key}"' not in section]
    header = spearmint("export", tmp_path).stdout.splitlines()[0].split(",")
    assert header == ["trial", "state", "value", "seconds", "reason", "x"]
    table = text.split("spearmint export --csv\n")[1].split("sge-jobs --json")[0]
    assert re.findall(r"\* - ``(\w+)``", table) == ["region", *header[:-1]]


def test_the_arrays_of_a_checkpoint_are_on_the_page(tmp_path: Path) -> None:
    text = page("files")
    rows = nn.Dataset.from_arrays(np.eye(4), ["a", "b", "a", "b"])
    config = nn.TrainConfig(hidden=(2,), epochs=1, patience=1)
    for optimizer in ("adam", "sgd"):
        kind = nn.TrainConfig.from_mapping({**config.as_dict(), "optimizer": optimizer})
        file = tmp_path / f"{optimizer}.npz"
        nn.train(kind, rows, rows, checkpoint=file, backend="numpy")
        with np.load(file) as arrays:
            assert not [name for name in arrays if f"``{name}``" not in text]
            meta = json.loads(arrays["meta"].tobytes())
        assert not [key for key in meta if f"``{key}``" not in text]


def test_the_columns_of_the_statistics_are_on_the_page() -> None:
    assert not [field.name for field in fields(Row) if f"``{field.name}``" not in page("files")]


def test_every_tag_of_a_cluster_is_on_the_page() -> None:
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "starcluster").rglob("*.py"))
    tags = re.findall(r'"(starcluster:\w+)"', "".join(sources))
    assert len(tags) > 5
    assert not [tag for tag in tags if f"``{tag}``" not in page("files")]


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (("spearmint", "--max-finished-jobs=1", "--method=RandomChooser", "ok"), 0),
        (("spearmint", "--max-broken=1", "--method=RandomChooser", "raises"), 1),
        (("spearmint", "typo"), 2),
        (("spearmint", "nothing"), 2),
        (("spearmint", "status", "ok"), 2),
        (("spearmint", "--nope", "ok"), 2),
        (("starcluster", "-c", "missing", "listclusters"), 2),
        (("starcluster", "nope"), 2),
        (("sge_jobs", "nope"), 2),
        (("sge_jobs", "submit", "--gpus=-1", "--", "true"), 2),
    ],
)
def test_the_programs_exit_as_the_page_says(
    argv: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    for name, body in (("ok", "return 1.0"), ("raises", "raise ValueError"), ("typo", "return 1")):
        (tmp_path / name).mkdir()
        text = CONFIG.replace("variable {", "variabel {") if name == "typo" else CONFIG
        (tmp_path / name / "config.pb").write_text(text)
        (tmp_path / name / "net.py").write_text(f"def main(job_id, params):\n    {body}\n")
    done = run(*argv, cwd=tmp_path)
    assert done.returncode == code, done.stderr


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (("train", "--data", "digits", "--set", "nope=1"), 2),
        (("train", "--data", "missing.csv"), 2),
        (("evaluate", "--checkpoint", "missing.npz"), 2),
    ],
)
@pytest.mark.usefixtures("capsys")
def test_pycuda_nn_exits_as_the_page_says(argv: tuple[str, ...], code: int) -> None:
    assert pycuda_nn_main(argv) == code


def test_the_page_lists_every_error_with_its_code() -> None:
    assert ".. include:: /_generated/error_codes.rst" in page("exit_codes")
    sys.path.insert(0, str(ROOT / "docs" / "_tools"))
    try:
        import setting_pages
    finally:
        sys.path.pop(0)
    table = setting_pages.pages()["error_codes.rst"]
    for child in StarClusterError.__subclasses__():
        if child.__module__ == "starcluster.errors":
            assert re.search(rf"``{child.__name__}``\n +- {child.exit_code}\n", table), child
