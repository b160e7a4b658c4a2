from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest

from pycuda_nn.cli.toml_settings import parse_value, read_settings
from pycuda_nn.config import CHECKS, TrainConfig
from pycuda_nn.errors import ConfigError


def test_every_field_has_a_check() -> None:
    assert list(CHECKS) == [field.name for field in dataclasses.fields(TrainConfig)]


def test_numbers_of_numpy_do_for_those_of_python() -> None:
    units, rate = np.array([32, 16]), np.array([0.5])
    config = TrainConfig(hidden=units, lr=rate[0], l2=np.float32(0.25), epochs=units[1])  # type: ignore[arg-type]
    assert config == TrainConfig(hidden=(32, 16), lr=0.5, l2=0.25, epochs=16)
    assert TrainConfig(hidden=(units[0],) * 2).hidden == (32, 32)
    assert json.loads(json.dumps(config.as_dict()))["hidden"] == [32, 16]
    with pytest.raises(ConfigError, match="hidden = "):
        TrainConfig(hidden=rate)  # type: ignore[arg-type]


def test_all_problems_come_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        TrainConfig(lr=-1, dropout=1.0, epochs=0, activation="rely", hidden=(0,))
    assert len(caught.value.problems) == 5
    text = str(caught.value)
    assert len(caught.value.problems) == text.count("\n  - ") == 5
    assert "\n  - lr = -1: " in text
    assert re.search(r"\n  - activation = 'rely': .*'relu'", text)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hidden", (3, -1)),
        ("hidden", (3.0,)),
        ("hidden", 3),
        ("hidden", (10**19,)),
        ("loss", "mse"),
        ("dropout", -0.1),
        ("dropout", float("nan")),
        ("l2", -1e-9),
        ("optimizer", "rmsprop"),
        ("lr", 0),
        ("lr", float("inf")),
        ("lr", True),
        ("lr", 10**400),
        ("momentum", 1.0),
        ("nesterov", 1),
        ("beta1", 1.0),
        ("beta2", 0.99999999),
        ("eps", 0.0),
        ("eps", 1e-300),
        ("schedule", "linear"),
        ("warmup_epochs", -1),
        ("step_epochs", 0),
        ("step_factor", 0.0),
        ("lr_min", -1.0),
        ("epochs", 1.5),
        ("batch_size", 0),
        ("patience", 0),
        ("patience", "soon"),
        ("monitor", "accuracy"),
        ("scale", "max"),
        ("seed", -1),
        ("seed", 2**63),
    ],
)
def test_each_wrong_value_is_named(key: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"{key} = "):
        TrainConfig.from_mapping({key: value})


def test_settings_that_contradict_each_other() -> None:
    with pytest.raises(ConfigError, match="warmup_epochs"):
        TrainConfig(epochs=2, warmup_epochs=3)
    with pytest.raises(ConfigError, match="lr_min"):
        TrainConfig(lr=0.1, lr_min=0.2)


def test_dict_and_back_through_json() -> None:
    config = TrainConfig(hidden=(3, 4), patience=2, lr=0.1)
    assert TrainConfig.from_mapping(json.loads(json.dumps(config.as_dict()))) == config


def test_unknown_keys_name_the_nearest(tmp_path: Path) -> None:
    file = tmp_path / "net.toml"
    file.write_text("learning_rate = 1\nhiden = [3]\n")
    with pytest.raises(ConfigError) as caught:
        read_settings(file, [])
    assert str(file) in str(caught.value)
    assert len(caught.value.problems) == 2
    assert re.search(r"'hiden'.*'hidden'", str(caught.value))
    with pytest.raises(ConfigError, match="'hiden'") as caught:
        read_settings(None, ["hiden=3", "epochs=0", "lr=-1"])
    assert len(caught.value.problems) == 3


def test_words_overrule_the_file(tmp_path: Path) -> None:
    file = tmp_path / "net.toml"
    file.write_text('hidden = [64, 32]\nlr = 1\nactivation = "tanh"\npatience = 3\n')
    config, given = read_settings(file, ["lr=0.5", "patience=none", "nesterov=yes", "hidden=8"])
    assert given == {"hidden", "lr", "activation", "patience", "nesterov"}
    assert config == TrainConfig(hidden=(8,), lr=0.5, activation="tanh", nesterov=True)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("hidden", "128,64", (128, 64)),
        ("hidden", "[128, 64]", (128, 64)),
        ("hidden", "", ()),
        ("lr", "1e-3", 1e-3),
        ("epochs", "12", 12),
        ("patience", "4", 4),
        ("nesterov", "False", False),
        ("activation", "tanh", "tanh"),
        ("epochs", "1.5", "1.5"),
    ],
)
def test_words_take_the_type_of_their_setting(key: str, text: str, value: object) -> None:
    assert parse_value(key, text) == value
    assert type(parse_value(key, text)) is type(value)


def test_bad_files_and_words(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--config .*none\.toml"):
        read_settings(tmp_path / "none.toml", [])
    file = tmp_path / "bad.toml"
    file.write_text("lr = \n")
    with pytest.raises(ConfigError, match=r"bad\.toml .*line 1"):
        read_settings(file, [])
    with pytest.raises(ConfigError, match=r"--set 'lr'.*KEY=VALUE"):
        read_settings(None, ["lr"])
