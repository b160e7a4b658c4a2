from __future__ import annotations

import re
import subprocess
import sys

import optuna
import pytest

import spearmint.choosers
from spearmint.choosers import (
    CHOOSERS,
    CMAChooser,
    GPConstrainedEIChooser,
    GPEIChooser,
    GPEIOptChooser,
    GPEIperSecChooser,
    RandomChooser,
    RandomForestEIChooser,
    SequentialChooser,
    chooser_names,
    make_chooser,
    parse_method_args,
)
from spearmint.errors import InputError


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("GPEIOptChooser", GPEIOptChooser),
        ("gpeioptchooser", GPEIOptChooser),
        ("GPEIOPT", GPEIOptChooser),
        ("gpei", GPEIChooser),
        ("gpeipersec", GPEIperSecChooser),
        ("GPEIPERSECCHOOSER", GPEIperSecChooser),
        ("gpconstrainedei", GPConstrainedEIChooser),
        ("randomforestei", RandomForestEIChooser),
        ("cma", CMAChooser),
        ("random", RandomChooser),
        ("RandomChooser", RandomChooser),
        ("sequential", SequentialChooser),
        ("RandomSampler", optuna.samplers.RandomSampler),
        ("tpesampler", optuna.samplers.TPESampler),
        ("TPE", optuna.samplers.TPESampler),
        ("QMCSampler", optuna.samplers.QMCSampler),
        ("NSGAIISampler", optuna.samplers.NSGAIISampler),
    ],
)
def test_names_in_any_case_with_or_without_their_last_word(name: str, kind: type) -> None:
    assert type(make_chooser(name, {}, seed=1)) is kind


def test_names_list_ours_first_and_only_what_can_be_made() -> None:
    names = chooser_names()
    assert names[: len(CHOOSERS)] == list(CHOOSERS)
    assert {"CmaEsSampler", "GPSampler", "QMCSampler", "TPESampler"} <= set(names)
    assert not {"BaseSampler", "GridSampler", "PartialFixedSampler"} & set(names)


def test_unknown_name_lists_all_and_guesses() -> None:
    with pytest.raises(InputError) as caught:
        make_chooser("GPEIOtpChooser", {}, seed=0)
    assert "'GPEIOtpChooser'" in caught.value.what
    assert "'GPEIOptChooser'?" in caught.value.fix
    for name in chooser_names():
        assert name in caught.value.fix


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("gpe", ["GPEIOptChooser", "GPEIChooser", "GPEIperSecChooser"]),
        ("GPEIO", ["GPEIOptChooser"]),
    ],
)
def test_the_beginning_of_names_lists_them(name: str, names: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        make_chooser(name, {}, seed=0)
    assert re.findall(r"'(\w+)'", caught.value.fix.splitlines()[0]) == names


def test_the_original_method_args() -> None:
    text = "mcmc_iters=12, burnin=3,noiseless=1,pending_samples=5,grid_subset=7"
    chooser = make_chooser("GPEIOptChooser", parse_method_args(text), seed=4)
    assert isinstance(chooser, GPEIOptChooser)
    assert (chooser.mcmc_iters, chooser.burnin, chooser.noiseless) == (12, 3, True)
    assert (chooser.pending_samples, chooser.grid_subset, chooser.seed) == (5, 7, 4)


def test_args_of_an_optuna_sampler() -> None:
    args = {"n_startup_trials": "3", "multivariate": "true"}
    chooser = make_chooser("TPESampler", args, seed=-1)
    assert isinstance(chooser, optuna.samplers.TPESampler)
    assert chooser._n_startup_trials == 3
    args = {"n_startup_trials": "2", "with_margin": "1"}
    assert make_chooser("CmaEs", args, seed=2**40)


@pytest.mark.parametrize(
    ("name", "args", "words"),
    [
        ("GPEIOptChooser", {"mcmc_iter": "3"}, ["mcmc_iter", "mcmc_iters, burnin, noiseless"]),
        ("GPEIOptChooser", {"seed": "3"}, ["GPEIOptChooser", "argument seed"]),
        ("GPEIOptChooser", {"mcmc_iters": "many"}, ["mcmc_iters 'many'", "integer"]),
        ("GPEIOptChooser", {"mcmc_iters": "0"}, ["mcmc_iters 0", " 1"]),
        ("GPEIOptChooser", {"noiseless": "perhaps"}, ["noiseless 'perhaps'", " 0 ", " 1"]),
        ("GPEIChooser", {"grid_subset": "3"}, ["argument grid_subset", "grid_size"]),
        ("GPEIChooser", {"grid_size": "0"}, ["grid_size 0", " 1"]),
        ("GPEIperSec", {"burnin": "-1"}, ["burnin -1", " 0"]),
        ("CMA", {"sigma0": "0"}, ["sigma0 0.0", " 10"]),
        ("RandomChooser", {"x": "1"}, ["RandomChooser", "argument x"]),
        ("TPESampler", {"gamma": "1"}, ["argument gamma", "n_startup_trials"]),
        ("QMCSampler", {"qmc_type": "dice"}, ["QMCSampler", "dice"]),
    ],
)
def test_wrong_args_say_which_and_what_is_right(name, args, words) -> None:
    with pytest.raises(InputError) as caught:
        make_chooser(name, args, seed=0)
    for word in words:
        assert word in str(caught.value)


def test_parse_method_args() -> None:
    assert parse_method_args("mcmc_iters=10,noiseless=1") == {"mcmc_iters": "10", "noiseless": "1"}
    assert parse_method_args(" a = b , ") == {"a": "b"}
    assert parse_method_args("") == {}
    for wrong in ("noiseless", "a=", "=1", "a=1,a=2"):
        with pytest.raises(InputError):
            parse_method_args(wrong)


def loaded_by(code: str) -> set[str]:
    """Return the heavy libraries that ``code`` imports in a new process."""
    heavy = {"torch", "scipy", "numpy", "optuna", "sqlalchemy", "sklearn", "cmaes"}
    program = f"import sys\n{code}\nprint(*({heavy} & set(sys.modules)))"
    argv = [sys.executable, "-c", program]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_a_chooser_is_imported_when_it_is_used_and_without_scipy() -> None:
    assert loaded_by("from spearmint.choosers import GPEIOptChooser") <= {
        "numpy",
        "optuna",
        "sqlalchemy",
    }
    with pytest.raises(AttributeError, match="'GPEIOtpChooser'"):
        _ = spearmint.choosers.GPEIOtpChooser
