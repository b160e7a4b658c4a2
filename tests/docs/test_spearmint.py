"""The documentation covers every key, option and command, and its examples run."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import click
import pytest

from spearmint.choosers import CHOOSERS
from spearmint.cli.main import COMMANDS
from spearmint.cli.run import run
from spearmint.config.schema import experiment_class
from spearmint.drivers import DRIVERS

ROOT = Path(__file__).parents[2]


def documented(page: str) -> str:
    return (ROOT / "docs" / page).read_text()


@pytest.fixture(scope="module")
def generated() -> Mapping[str, str]:
    """Return the generated pages of the documentation."""
    tool = runpy.run_path(str(ROOT / "docs" / "_tools" / "setting_pages.py"))
    pages: Mapping[str, str] = tool["pages"]()
    return pages


def test_every_key_of_config_is_documented(generated: Mapping[str, str]) -> None:
    page = documented("reference/config.rst")
    for name in ("config_keys", "resource_keys"):
        assert f".. include:: /_generated/{name}.rst" in page
        page += generated[f"{name}.rst"]
    whole = experiment_class().DESCRIPTOR
    assert whole.fields_by_name["resources"].message_type.fields_by_name["gpus"].number == 1
    blocks = (whole, *whole.nested_types)
    for field in (field for block in blocks for field in block.fields if field.name != "param"):
        assert f"``{field.name}``" in page, field.name


def test_every_option_of_run_is_documented(generated: Mapping[str, str]) -> None:
    assert ".. include:: /_generated/run_options.rst" in documented("reference/run_options.rst")
    page = generated["run_options.rst"]
    for option in (option for option in run.params if isinstance(option, click.Option)):
        if not option.hidden:
            assert f"``{option.opts[-1]}``" in page, option.name


def test_the_page_on_stop_rules_has_the_options_that_stop_a_search(
    generated: Mapping[str, str],
) -> None:
    assert ".. include:: /_generated/stop_options.rst" in documented("how_to/stop_rules.rst")
    assert "``--max-finished-jobs``" in generated["stop_options.rst"]


@pytest.mark.parametrize(
    ("page", "names"),
    [("how_to/run.rst", sorted(DRIVERS)), ("reference/choosers.rst", sorted(CHOOSERS))],
)
def test_every_driver_and_chooser_is_documented(page: str, names: list[str]) -> None:
    for name in names:
        assert name in documented(page), name


def test_every_command_is_shown_on_a_how_to_page() -> None:
    assert {
        *("run", "init", "convert", "status", "best", "export", "import", "report", "cleanup"),
        *("worker", "workers", "show", "add", "retry", "stop", "note", "tag", "check"),
        *("final", "promote", "rollback", "plan"),
    } == set(COMMANDS)
    pages = "".join(path.read_text() for path in (ROOT / "docs" / "how_to").glob("*.rst"))
    for name in set(COMMANDS) - {"run"}:
        assert f"spearmint {name} " in pages, name


def run_example(folder: str, tmp_path: Path, *argv: str) -> str:
    """Run ``argv`` on a copy of an example and return its output."""
    copy = tmp_path / folder
    shutil.copytree(ROOT / "examples" / folder, copy)
    done = subprocess.run(
        [sys.executable, *argv], cwd=copy, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_ask_and_tell_finds_the_top(tmp_path: Path) -> None:
    output = run_example("ask_and_tell", tmp_path, "ask_and_tell.py")
    assert float(output.split()[2]) > 0.95


def test_the_example_of_a_function_finds_the_bottom(tmp_path: Path) -> None:
    output = run_example("minimize", tmp_path, "minimize.py")
    assert "30 complete" in output
    assert float(output.partition("best ")[2].split()[0]) < 0.3


def test_the_shell_example_runs(tmp_path: Path) -> None:
    argv = ("-m", "spearmint", "--method=RandomChooser", "--max-finished-jobs=3", ".")
    output = run_example("shell", tmp_path, *argv)
    assert re.search(r"\b3 complete\b.*\b0 broken\b", output)


def test_the_branin_example_runs(tmp_path: Path) -> None:
    """tests/spearmint/choosers/test_contract.py shows that 40 trials solve it."""
    argv = ("-m", "spearmint", "--method=GPEIOptChooser", "--max-finished-jobs=10", ".")
    run_example("branin", tmp_path, *argv)
    best = (tmp_path / "branin" / "best_job_and_result.txt").read_text()
    assert float(best.split()[2]) < 20.0


@pytest.mark.slow
def test_a_short_search_of_digits_reaches_its_test_set(tmp_path: Path) -> None:
    argv = ("-m", "spearmint", "--max-finished-jobs=2", "-n", "2", ".")
    run_example("digits", tmp_path, *argv)
    done = subprocess.run(
        [sys.executable, "final.py"],
        cwd=tmp_path / "digits",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "of 359 images)" in done.stdout
