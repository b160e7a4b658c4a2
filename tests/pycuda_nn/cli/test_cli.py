from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

import pycuda_nn as nn
from pycuda_nn.backends import load
from pycuda_nn.cli.main import cli, main
from pycuda_nn.cli.progress import shown
from pycuda_nn.training import checkpoint as files

ROOT = Path(__file__).parents[3]
QUICK = ["--set", "epochs=3", "--set", "hidden=16"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 2))
    lines = [f"{a},{b},{'hot' if a + b > 0 else 'cold'}" for a, b in x]
    file = tmp_path / "my table.csv"
    file.write_text("\n".join(["a,b,state", *lines]) + "\n")
    return file


@pytest.fixture
def trained(table: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    path = table.with_name("net.npz")
    args = ["train", "--data", str(table), "--checkpoint", str(path), "--set", "epochs=40"]
    assert main([*args, "--set", "lr=0.01"]) == 0
    capsys.readouterr()
    return path


def run(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pycuda_nn", *args],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_process_trains_and_separates_result_from_progress(table: Path) -> None:
    done = run("train", "--data", str(table), *QUICK, "--json", "--backend", "numpy")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["last"]["epoch"] == 3
    assert answer["backend"] == "numpy"
    lines = done.stderr.splitlines()
    assert len(lines) == 5
    assert lines[0] == "classification, 2 classes, from 72 rows"
    assert re.match(r"training path: numpy, .*\(3 layers, ", lines[1])
    assert lines[2].startswith("epoch 1/3  train loss ")


def test_process_bad_input_is_no_traceback() -> None:
    done = run("train", "--data", "nothing.csv", "--backend", "numpy")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 2
    assert done.stderr.startswith("Error: nothing.csv: ")
    assert done.stdout == ""


def test_evaluate_takes_the_test_part_of_the_training(
    trained: Path, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", "--checkpoint", str(trained), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    test = nn.load_splits(table).test
    want = nn.evaluate(nn.load_model(trained), test)
    assert (answer["rows"], answer["loss"], answer["error"]) == (24, want.loss, want.error)
    assert want.error < 0.15
    assert main(["evaluate", "--checkpoint", str(trained), "--part", "valid"]) == 0
    assert "valid part (24 rows): loss" in capsys.readouterr().out


def test_evaluate_refuses_a_part_of_data_that_changed(
    trained: Path, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = table.read_text()
    table.write_text(before + "1,1,hot\n" * 30)
    assert main(["evaluate", "--checkpoint", str(trained)]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"Error: {table} ")
    assert str(trained) in error
    assert "--data" in error
    assert main(["evaluate", "--checkpoint", str(trained), "--data", str(table)]) == 0
    table.write_text(before)
    assert main(["evaluate", "--checkpoint", str(trained)]) == 0


def test_evaluate_other_data_with_one_class_and_more_columns(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "new.csv"
    file.write_text("state,id,b,a\nhot,1,2,3\nhot,2,1,1\n")
    args = ["evaluate", "--checkpoint", str(trained), "--data", str(file), "--target", "state"]
    assert main(args) == 0
    assert "(2 rows): loss" in capsys.readouterr().out
    file.write_text("state,b,a\nwarm,2,3\n")
    assert main(args) == 2
    assert re.search(r"'warm'.* row 0\b", capsys.readouterr().err)


def test_predict_csv_and_npy(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "new.csv"
    file.write_text("a,b\n3,3\n-3,-3\n")
    args = ["predict", "--checkpoint", str(trained), "--data", str(file)]
    assert main(args) == 0
    assert capsys.readouterr().out == "prediction\nhot\ncold\n"
    out = tmp_path / "p.csv"
    assert main([*args, "--out", str(out), "--probabilities"]) == 0
    lines = out.read_text().splitlines()
    assert lines[0] == "prediction,p_cold,p_hot"
    label, cold, hot = lines[1].split(",")
    assert label == "hot"
    assert float(hot) > 0.9
    assert float(cold) + float(hot) == pytest.approx(1)
    assert main([*args, "--out", str(tmp_path / "p.npy")]) == 0
    assert np.load(tmp_path / "p.npy").tolist() == ["hot", "cold"]
    assert main([*args, "--out", str(tmp_path / "q.npy"), "--probabilities"]) == 0
    assert np.load(tmp_path / "q.npy").shape == (2, 2)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this machine has no /dev/full")
@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_a_full_disk_behind_the_output_is_no_traceback(trained: Path, command: str) -> None:
    data = ["--data", str(trained.with_name("my table.csv"))]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "pycuda_nn", command, "--checkpoint", str(trained), *data],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "Error: standard output: No space left on device\n"


def test_regression_from_parquet_free_text_to_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x = np.random.default_rng(0).normal(size=(80, 2))
    file, net = tmp_path / "a.npz", tmp_path / "net.npz"
    np.savez(file, x=x, y=x @ [1.0, -1.0])
    assert main(["train", "--data", str(file), "--checkpoint", str(net), *QUICK]) == 0
    assert main(["evaluate", "--checkpoint", str(net)]) == 0
    assert "RMSE" in capsys.readouterr().out
    assert main(["predict", "--checkpoint", str(net), "--data", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "prediction"
    assert len(lines) == 81
    args = ["predict", "--checkpoint", str(net), "--data", str(file), "--probabilities"]
    assert main(args) == 2


def test_an_old_checkpoint_is_not_overwritten_by_chance(
    trained: Path, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = trained.read_bytes()
    args = ["train", "--data", str(table), "--checkpoint", str(trained), *QUICK]
    assert main(args) == 2
    error = capsys.readouterr().err
    assert all(fact in error for fact in (str(trained), "--resume", "--overwrite"))
    assert trained.read_bytes() == before
    assert main([*args, "--resume"]) == 1  # different settings
    assert "hidden: [128]" in capsys.readouterr().err
    assert main([*args, "--overwrite"]) == 0
    assert trained.read_bytes() != before


def test_a_table_resumes_with_the_settings_that_its_size_chose(tmp_path: Path) -> None:
    file, net = tmp_path / "t.csv", tmp_path / "n.npz"
    file.write_text("a,l\n" + "".join(f"{i % 7},{'xy'[i % 2]}\n" for i in range(40)))
    args = ["train", "--data", str(file), "--checkpoint", str(net), "--backend", "numpy"]
    assert main(args) == 0
    saved = files.load(net)
    epochs = saved.config.epochs + 1
    assert main([*args, "--resume", "--set", f"epochs={epochs}"]) == 0
    again = files.load(net)
    assert again.config == replace(saved.config, epochs=epochs)
    assert len(again.history.reports) == epochs
    assert main([*args, "--resume", "--set", f"epochs={epochs}", "--set", "l2=0.5"]) == 1


@pytest.mark.parametrize(
    ("args", "code", "facts"),
    [
        (["--precision", "bf17"], 2, ["'bf17'", "'bf16'"]),
        (["--backend", "numpy", "--precision", "bf16"], 2, ["--precision", "cuda"]),
        (["--gpus", "0"], 2, ["--gpus", "'0'"]),
        (["--gpus", "-1"], 2, ["--gpus", "'-1'"]),
        (["--gpus", "x"], 2, ["--gpus", "'x'", "all or auto"]),
        (["--exchange", "mpi"], 2, ["'mpi'", "'peer'"]),
        (["--backend", "numpy", "--gpus", "2"], 2, ["--gpus", "cuda"]),
        (["--backend", "numpy", "--gpus", "all"], 2, ["--gpus", "cuda"]),
        (["--backend", "numpy", "--exchange", "nccl"], 2, ["--exchange", "cuda"]),
        (["--memory-limit", "2 bananas"], 2, ["'2 bananas'", "2GiB"]),
        (["--backend", "nump"], 2, ["'nump'", "'numpy'"]),
        (["--set", "lrate=1"], 2, ["'lrate'"]),
        (["--set", "epoch=1"], 2, ["'epoch'", "'epochs'"]),
        (["--set", "lr"], 2, ["--set 'lr'", "KEY=VALUE"]),
        (["--set", "lr=abc", "--set", "epochs=0"], 2, ["  - lr = 'abc'", "  - epochs = 0"]),
        (["--config", "none.toml"], 2, ["--config none.toml"]),
        (["--target", "stat"], 2, ["'stat'", "'state'"]),
        (["--fractions", "1,2"], 2, ["fractions 1,2:", "0.6,0.2,0.2"]),
        (["--fractions", "a"], 2, ["fractions 'a'", "0.6,0.2,0.2"]),
        (["--resume"], 2, ["--resume", "--checkpoint FILE"]),
        (["--resume", "--overwrite", "--checkpoint", "x.npz"], 2, ["--resume ", " --overwrite"]),
        (["--checkpoint", "no/folder/x.npz"], 2, ["no/folder/x.npz", "mkdir -p no/folder\n"]),
        (["--set", "loss=squared"], 2, ["loss = 'squared'", "2 classes"]),
        (["--set", "optimizer=sgd", "--set", "lr=1e20"], 1, ["epoch 1", "learning rate 1e+20"]),
        (["--jsno"], 2, ["--json"]),
        (["--scale-rule", "sqrt"], 2, ["--scale-batch N"]),
        (["--scale-batch", "0"], 2, ["--scale-batch"]),
        (["--scale-batch", "1000"], 2, ["scale_batch = 1000", "training rows"]),
        (["--task", "clasify"], 2, ["'clasify'", "'classify'"]),
    ],
)
def test_each_mistake_has_its_code_and_words(
    args: list[str],
    code: int,
    facts: list[str],
    table: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["train", "--data", str(table), *args]) == code
    captured = capsys.readouterr()
    assert [fact for fact in facts if fact not in captured.err] == []
    assert captured.out == ""


@pytest.mark.parametrize(
    ("args", "start"),
    [
        (["train", "--data", "digits", "--target", "3"], "--target: digits "),
        (["train", "--data", "digits", "--labels", "y.npy"], "--labels: digits "),
        (["evaluate", "--checkpoint", "x", "--target", "3"], "--labels .*--target .*--data\n"),
        (
            ["evaluate", "--checkpoint", "NET", "--data", "a.npz", "--target", "b"],
            "--target: a.npz",
        ),
    ],
)
def test_an_option_that_the_data_does_not_read_is_refused(
    args: list[str], start: str, trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(trained) if word == "NET" else word for word in args]) == 2
    assert re.match(f"Error: {start}", capsys.readouterr().err)


def test_another_host_than_the_first_names_no_checkpoint(
    table: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load("numpy"), "saves", False)
    net = table.with_name("n.npz")
    args = ["train", "--data", str(table), "--checkpoint", str(net), "--backend", "numpy"]
    args += ["--set", "epochs=1"]
    assert main(args) == 0
    assert "--checkpoint" not in capsys.readouterr().out
    assert main([*args, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["checkpoint"] is None
    assert not net.exists()


def test_options_for_large_minibatches_are_settings_of_the_checkpoint(
    table: Path, tmp_path: Path
) -> None:
    net = tmp_path / "n.npz"
    args = ["train", "--data", str(table), "--checkpoint", str(net), "--backend", "numpy"]
    args += ["--set", "batch_size=4", "--set", "epochs=2", "--scale-batch", "3"]
    assert main([*args, "--scale-rule", "sqrt"]) == 0
    saved = files.load(net).config
    assert (saved.batch_size, saved.scale_batch, saved.scale_rule) == (4, 3, "sqrt")
    assert main([*args, "--resume"]) == 1
    assert main([*args, "--resume", "--set", "scale_rule=sqrt"]) == 0


def test_digits_as_a_regression(capsys: pytest.CaptureFixture[str]) -> None:
    args = ["--data", "digits", "--task", "regress", "--set", "epochs=1", "--set", "loss=squared"]
    assert main(["train", *args]) == 0
    assert nn.load_data("digits", task="regress").y.shape == (1797, 1)


def test_wrong_files_for_evaluate_and_predict(
    trained: Path, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", "--checkpoint", str(tmp_path / "none.npz")]) == 2
    assert str(tmp_path / "none.npz") in capsys.readouterr().err
    args = ["predict", "--checkpoint", str(trained), "--data", str(table)]
    assert main([*args, "--out", "p.txt"]) == 2
    assert main([*args, "--out", str(tmp_path / "no" / "p.csv")]) == 1
    assert str(tmp_path / "no" / "p.csv") in capsys.readouterr().err
    table.unlink()
    assert main(["evaluate", "--checkpoint", str(trained)]) == 2
    assert f"{table}: " in capsys.readouterr().err


def test_unknown_command_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trian"]) == 2
    assert "train" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", *cli.commands])
def test_help_shows_two_real_lines(name: str) -> None:
    result = CliRunner().invoke(cli, [*name.split(), "--help"])
    assert result.exit_code == 0
    lines = [line for line in result.output.splitlines() if line.startswith("    pycuda-nn ")]
    assert len(lines) >= 2
    for line in lines:  # every option in it is one of that command
        command = cli.commands[line.split()[1]]
        if isinstance(command, click.Group):
            command = command.commands[line.split()[2]]
        known = {o for p in command.params if isinstance(p, click.Option) for o in p.opts}
        assert {word for word in line.split() if word.startswith("--")} <= known


def test_version() -> None:
    result = CliRunner().invoke(cli, ["--version"])
    assert result.output.startswith("pycuda-nn ")


def test_progress_on_a_terminal_has_one_line_an_epoch() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    with shown(2, stream) as show:
        for epoch in (1, 2):
            show(
                nn.EpochReport(
                    epoch=epoch, train_loss=0.5, valid_loss=0.25, valid_error=0.1, lr=1, seconds=1
                )
            )
    text = stream.getvalue()
    assert "epoch 1/2  train loss 0.50000  valid loss 0.25000  error 0.1000  lr 1" in text
    assert "epoch 2/2" in text
