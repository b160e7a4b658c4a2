"""One declaration of a setting is enough: a resource that a test adds works everywhere."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from sge_jobs import JobSpec, qsub_argv
from sge_jobs import Resources as SgeResources
from spearmint.choosers import CHOOSERS
from spearmint.cli.overrides import override_resources, search_limits, study_limits
from spearmint.cli.run import run
from spearmint.cli.setting_options import given_options, options_of
from spearmint.config.document import Document
from spearmint.config.reference import key_rows, option_sections
from spearmint.config.values import read_values
from spearmint.controller import SearchLimits, StudyLimits
from spearmint.drivers import DRIVERS
from spearmint.drivers.queue import SubmitSpec
from spearmint.drivers.sge.spec import job_spec
from spearmint.errors import ConfigError, InputError
from spearmint.fields import INTEGER, TEXT, Key, key_of, keys_of, setting, settings_of
from spearmint.model import Experiment, Language
from spearmint.resources import Resources, submit_arguments
from spearmint.run_options import RunOptions

HEAD = 'language: PYTHON\nname: "x"\nvariable { name: "lr" type: FLOAT min: 0 max: 1 }\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class MoreResources(Resources):
    """Resources, and two fields that the program does not have."""

    tmp_disk: str = setting(
        "",
        TEXT,
        "--tmp-disk",
        key=Key(number=94),
        metavar="SIZE",
        help="Request a host with this much free temporary space, e.g. 20G.",
        submit={"SGE": ("-l", "tmp_free={value}"), "Slurm": ("--tmp={value}",)},
    )
    licences: int = setting(
        0,
        INTEGER,
        "--licences",
        key=Key(number=95),
        minimum=1,
        help="Request this many licences.",
        submit={"Slurm": ("--licenses=matlab:{value}",)},
    )


def command_line(*argv: str) -> MoreResources:
    """Return the resources of a command line with ``argv``, without any in config.pb."""
    taken: list[MoreResources] = []

    @click.command()
    @options_of(MoreResources, defaults=False)
    def command(**options: object) -> None:
        given = given_options(MoreResources, options)
        taken.append(override_resources(MoreResources(), given))

    done = CliRunner().invoke(command, argv)
    assert done.exit_code == 0, done.output
    return taken[0]


def config_block(block: str) -> MoreResources:
    """Return the resources of a config.pb with this block ``resources``."""
    path = Path("/search/config.pb")
    document = Document(path, f"{HEAD}resources {{\n{block}\n}}\n", MoreResources)
    message = document.message.resources
    values = read_values(message, MoreResources, path.parent, document.error, "resources", 0)
    return MoreResources(**values)


def test_a_new_resource_has_an_option() -> None:
    assert command_line("--tmp-disk=20G", "--gpus=2") == MoreResources(tmp_disk="20G", gpus=2)
    assert command_line() == MoreResources()


def test_a_new_resource_has_a_key_in_config_pb() -> None:
    block = config_block('tmp_disk: "20G" licences: 3 walltime: "2h" venv: "env" env: "A=b"')
    assert block == MoreResources(
        tmp_disk="20G",
        licences=3,
        walltime_s=7200.0,
        venv=Path("/search/env"),
        environment=(("A", "b"),),
    )


@pytest.mark.parametrize(
    ("block", "place", "words"),
    [
        ("tmp_disc: '1'", "5:1", ["'tmp_disc'", "'tmp_disk'?"]),
        ("licences: 0", "5:1", ["licences", " 0", " 1"]),
        ("gpus: 1\n slots: 0", "6:2", ["slots", " 0", " 1"]),
        (
            "walltime: 'soon'",
            "5:1",
            ["walltime: ", "'soon'", 'walltime: "2h"'],
        ),
        ("env: 'A=1' env: 'B'", "5:12", ["env: ", "'B'", "NAME=VALUE"]),
        ("gpus: -1", "5:1", ["gpus", "-1"]),
        ("gpus: 1.5", "5:1", ["gpus", "1.5", "0.01"]),
        ("gpus: nan", "5:1", ["gpus", "nan"]),
    ],
)
def test_a_wrong_resource_is_named_with_its_place(block: str, place: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        config_block(block)
    assert str(caught.value).startswith(f"/search/config.pb:{place}: ")
    for word in words:
        assert word in str(caught.value)


def test_a_new_resource_is_in_the_reference() -> None:
    assert re.search(
        "``tmp_disk`` : text\n"
        "   Request a host with this much free temporary space, e\\.g\\. 20G\\. ``--tmp-disk`` ",
        key_rows(MoreResources),
    )
    assert "``--tmp-disk`` : SIZE\n" in option_sections(MoreResources, "Resources")


def spec_of(need: Resources) -> JobSpec:
    return job_spec(
        SubmitSpec(
            token=f"{7:012x}",
            label="x-1",
            argv=("true",),
            directory=Path("/search"),
            output=Path("/search/output/1"),
            environment={},
            resources=need,
        )
    )


def test_a_new_resource_is_asked_of_the_queue() -> None:
    argv = qsub_argv(spec_of(MoreResources(tmp_disk="20G", gpus=2, options=("-m", "e"))))
    assert argv[-4:] == ["-l", "tmp_free=20G", "-m", "e"]
    assert "gpu=2" in argv


def test_a_share_of_a_gpu_is_a_number_below_one() -> None:
    for need in (command_line("--gpus=0.25"), config_block("gpus: 0.25")):
        assert need.gpus == 0.25
        argv = qsub_argv(spec_of(need))
        assert argv[argv.index("gpu_share=0.25") - 1] == "-l"
    assert repr(config_block("gpus: 2").gpus) == "2"


def test_a_resource_that_a_queue_cannot_ask_for_is_refused() -> None:
    with pytest.raises(InputError, match=r"\bSGE\b.*--licences\b.*\n.*\bSlurm\b"):
        spec_of(MoreResources(licences=1))
    assert submit_arguments(MoreResources(licences=2, tmp_disk="1G"), "Slurm") == (
        "--tmp=1G",
        "--licenses=matlab:2",
    )


def test_each_resource_reaches_the_queue() -> None:
    known = {field.name for field in (*fields(SgeResources), *fields(JobSpec))}
    for declared in settings_of(Resources):
        assert declared.name in known or declared.submit, declared.name


@pytest.mark.parametrize("cls", [RunOptions, Resources])
def test_each_field_is_declared(cls: type) -> None:
    assert [declared.name for declared in settings_of(cls)] == [field.name for field in fields(cls)]
    numbers = [key.number for key in keys_of(cls)]
    assert len(set(numbers)) == len(numbers)


def test_names_numbers_and_types_of_keys_stay() -> None:
    keys = {key.name: (key.number, key.kind.key_type) for key in keys_of(RunOptions)}
    assert keys == {
        "learn_from": (111, "string"),
        "max_retries": (102, "uint32"),
        "trial_timeout": (103, "double"),
        "region": (104, "string"),
        "pruner": (105, "string"),
        "pruner_args": (106, "string"),
        "warm_start": (107, "uint32"),
        "launcher": (109, "string"),
        "processes": (110, "uint32"),
        "batch": (112, "uint32"),
    }
    assert [key.name for key in keys_of(Resources)][:13] == [
        "gpus", "slots", "parallel_environment", "walltime", "memory", "queue", "project",
        "request", "option", "env", "module", "venv", "setup",
    ]  # fmt: skip
    assert [key.number for key in keys_of(Resources)][:13] == list(range(1, 14))


def test_each_limit_is_set_by_its_option() -> None:
    options = RunOptions(
        max_concurrent=3, queue_ahead=2, polling_time=5.0, max_time=60.0, max_finished_jobs=7,
        max_broken=4, patience=6, target=0.5, max_trial_time=90.0, max_cost=2.0,
        cost_per_hour=100.0,
    )  # fmt: skip
    experiment = Experiment(
        path=Path("/search/config.pb"),
        name="x",
        language=Language.PYTHON,
        variables=(),
        warm_start=8,
    )
    assert search_limits(options, experiment) == SearchLimits(
        concurrent=3, queue_ahead=2, polling_s=5.0, time_s=60.0, trial_time_s=72.0, warm_start=8
    )
    assert study_limits(options) == StudyLimits(finished=7, broken=4, patience=6, target=0.5)


def test_the_help_lists_the_names_of_the_registry() -> None:
    text = " ".join(CliRunner().invoke(run, ["--help"]).output.split())
    for names in (CHOOSERS, DRIVERS):
        assert f"Built-in: {', '.join(names)}." in text


def test_what_an_option_needs_is_an_option() -> None:
    names = {declared.name for declared in settings_of(RunOptions)}
    for declared in settings_of(RunOptions):
        assert not declared.needs or declared.needs in {*names, "queue"}
    assert key_of(settings_of(RunOptions)[0]) is None
