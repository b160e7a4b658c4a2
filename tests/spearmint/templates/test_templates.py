"""spearmint init: each template runs, and no file is overwritten."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from spearmint.config.reader import load_experiment
from spearmint.config.wrapper import require_wrapper
from spearmint.templates import TEMPLATES, copy_template
from tests import commands

BASE = {"pycuda_nn", "shell"}


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_runs_at_once(name: str, tmp_path: Path) -> None:
    if missing := TEMPLATES[name].missing():
        pytest.skip(f"needs {', '.join(missing)}")
    directory = tmp_path / "new" / "experiment"
    written = commands.spearmint("init", f"--template={name}", directory)
    assert written.returncode == 0, written.stderr
    last = written.stdout.splitlines()[-1]
    assert last == f"Search: spearmint -n 2 --max-finished-jobs=20 {directory}"
    done = commands.spearmint("-n2", "--max-finished-jobs=2", directory)
    assert done.returncode == 0, done.stdout + done.stderr
    best = json.loads(commands.spearmint("best", "--json", directory).stdout)
    assert best["value"] >= 0


def test_the_default_template_trains_several_trials_in_each_job(tmp_path: Path) -> None:
    commands.spearmint("init", tmp_path)
    done = commands.spearmint("--max-finished-jobs=3", "--batch=3", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 job of up to 3 trials" in done.stdout
    assert "trial 3: " in done.stdout


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_is_a_config_with_its_wrapper(name: str, tmp_path: Path) -> None:
    files = copy_template(TEMPLATES[name], tmp_path)
    experiment = load_experiment(tmp_path)
    require_wrapper(experiment)
    for file in files:
        if file.suffix == ".py":
            compile(file.read_text(), file, "exec")
        if file.suffix == ".sh":
            assert os.access(file, os.X_OK)
            assert file.stat().st_mode & stat.S_IWOTH == 0


def test_the_default_needs_only_the_base_installation() -> None:
    assert next(iter(TEMPLATES)) in BASE
    assert all(TEMPLATES[name].modules == {} for name in BASE)


@pytest.mark.parametrize("existing", ["config.pb", "train.py"])
@pytest.mark.parametrize("kind", ["file", "dangling link", "folder"])
def test_no_file_is_overwritten(existing: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / existing
    if kind == "file":
        path.write_text("mine")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "nowhere")
    done = commands.spearmint("init", tmp_path)
    assert done.returncode == 2
    assert str(path) in done.stderr
    assert list(tmp_path.iterdir()) == [path]


def test_a_template_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, mode: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "chmod", full)
    done = commands.spearmint("init", "--template=shell", tmp_path)
    assert done.returncode == 2
    assert list(tmp_path.iterdir()) == []


def test_a_file_cannot_be_the_directory(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for target in (file, file / "below"):
        done = commands.spearmint("init", target)
        assert done.returncode == 2
        assert str(file) in done.stderr


def test_a_missing_package_is_named_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spearmint.templates.copy.find_spec", lambda name: None)
    done = commands.spearmint("init", "--template=pytorch", tmp_path)
    assert done.returncode == 0
    assert "install" in done.stdout
    assert "torch" in done.stdout


def test_help_lists_each_template_in_one_line() -> None:
    text = commands.spearmint("init", "--help").stdout
    for template in TEMPLATES.values():
        assert f"{template.name:10} {template.about}\n" in text
