"""Every recipe of docs/how_to/extend.rst runs, and the files that it names exist."""

from __future__ import annotations

import importlib
import re
import subprocess
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

from spearmint.choosers.testing import ChooserContract
from spearmint.drivers import Driver, DriverSettings, SubmitSpec, make_driver
from spearmint.drivers.testing import DriverContract, FakeQueue
from spearmint.resources import Resources
from starcluster.testing import FakeNode

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "extending"
DOCS = ROOT / "docs"
PAGE = (DOCS / "why" / "files_of_an_extension.rst").read_text(encoding="utf-8")
RECIPES = {
    "write_driver": "slurm_driver",
    "write_chooser": "mutation_chooser",
    "write_layer": "leaky_relu",
    "write_plugin": "scratch_plugin",
    "write_command": "count_command",
}
BEFORE = "9e4c379"
spearmint_main = importlib.import_module("spearmint.cli.main")


def example(name: str) -> ModuleType:
    return importlib.import_module(name)


@pytest.fixture(autouse=True)
def examples_on_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(EXAMPLES)
    return


class FakeSlurm:
    """Answers as Slurm's commands do."""

    def __init__(self, directory: Path) -> None:
        self.queue = FakeQueue(DriverSettings(directory=directory))

    def __call__(
        self, program: str, *argv: str, text: str = "", inherit: Sequence[int] = ()
    ) -> str:
        options = dict(option.lstrip("-").partition("=")[::2] for option in argv)
        match program:
            case "sbatch":
                spec = SubmitSpec(
                    token=options["job-name"],
                    label="",
                    argv=("bash", "-c", text),
                    directory=Path(options["chdir"]),
                    output=Path(options["output"]),
                    environment={},
                    resources=Resources(),
                )
                return f"{self.queue.submit(spec, inherit=inherit)}\n"
            case "squeue":
                jobs = self.queue.jobs()
                return "".join(f"{job.id}|{job.token}|{job.state.name}\n" for job in jobs)
            case "scancel":
                self.queue.cancel(argv)
                return ""
            case "sacct":
                runs = self.queue.accounting(argv[-2]) or ()
                return "".join(f"{run.host}||{run.exit_status}:{run.signal}\n" for run in runs)
        raise AssertionError(program)


class TestSlurmDriver(DriverContract):
    def make_driver(self, directory: Path) -> Driver:
        example("slurm_driver").run = FakeSlurm(directory)
        settings = DriverSettings(directory=directory, polling_s=0.05)
        return make_driver("slurm_driver:SlurmDriver", settings)


@pytest.mark.parametrize(("page", "code"), RECIPES.items())
def test_each_recipe_has_a_page_that_shows_its_code(page: str, code: str) -> None:
    assert f":doc:`{page}`" in (DOCS / "how_to" / "extend.rst").read_text(encoding="utf-8")
    text = (DOCS / "how_to" / f"{page}.rst").read_text(encoding="utf-8")
    assert f"literalinclude:: ../../examples/extending/{code}.py" in text
    for block in blocks(page):
        compile(block, page, "exec")


def blocks(page: str) -> list[str]:
    """Return the blocks of Python on a how-to page that are whole programs."""
    text = (DOCS / "how_to" / f"{page}.rst").read_text(encoding="utf-8")
    found = re.findall(r"code-block:: python\n\n((?:   .*\n|\n)+)", text)
    return [code for code in map(textwrap.dedent, found) if "import" in code]


def test_the_layer_trains_and_its_test_passes() -> None:
    trains, its_test = blocks("write_layer")
    names: dict[str, Any] = {}
    exec(trains.replace("epochs=30", "epochs=2"), names)  # noqa: S102 - our own page
    assert len(names["result"].history) == 2
    exec(its_test, names)  # noqa: S102 - our own page
    contract = names["TestLeakyRelu"]()
    rules = [name for name in dir(contract) if name.startswith("test_")]
    assert len(rules) >= 6
    for name in rules:
        getattr(contract, name)()


class TestMutationChooser(ChooserContract):
    chooser = "mutation_chooser:MutationChooser"


def test_the_plugin_sets_up_old_and_new_nodes() -> None:
    nodes = [FakeNode("master"), FakeNode("node001")]
    plugin = example("scratch_plugin").Scratch(path="/data/scratch")
    plugin.run(nodes, nodes[0], "sgeadmin", "bash", {})
    late = FakeNode("node002")
    plugin.on_add_node(late, [*nodes, late], nodes[0], "sgeadmin", "bash", {})
    assert all(node.ssh.isdir("/data/scratch") for node in [*nodes, late])


def test_the_command_counts_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    help_text = "Print how many trials the search of CONFIG has, in any state."
    commands = {**spearmint_main.COMMANDS, "count": ("count_command:count", help_text)}
    monkeypatch.setattr(spearmint_main, "COMMANDS", commands)
    (tmp_path / "config.pb").write_text(
        'language: PYTHON name: "f" variable { name: "x" type: FLOAT min: 0 max: 1 }'
    )
    (tmp_path / "f.py").write_text("def main(job_id, params):\n    return params['x'][0]\n")
    runner = CliRunner()
    shown = runner.invoke(spearmint_main.cli, ["--help"]).output
    assert help_text in " ".join(shown.split())
    argv = ["--method=random", "--max-finished-jobs=3", str(tmp_path)]
    searched = runner.invoke(spearmint_main.cli, argv, catch_exceptions=False)
    assert searched.exit_code == 0, searched.output
    assert runner.invoke(spearmint_main.cli, ["count", str(tmp_path)]).output == "3\n"


def touched(when: str) -> list[str]:
    rows = re.findall(
        rf"^   \* - {when}\n     - ((?:.+\n|       .+\n)+?)(?=   \*|\n|\Z)", PAGE, re.M
    )
    assert len(rows) == 5
    return re.findall(r"``([\w/]+\.(?:py|rst|cuh|toml))``", "\n".join(rows))


@pytest.mark.parametrize("path", touched("After"))
def test_the_files_that_a_recipe_touches_are_there(path: str) -> None:
    assert (ROOT / path).exists()


def test_the_files_that_it_touched_before_were_there() -> None:
    listing = ["git", "ls-tree", "-r", "--name-only", BEFORE]
    done = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"this copy has no history with {BEFORE}")
    assert set(touched("Before")) <= set(done.stdout.splitlines())
