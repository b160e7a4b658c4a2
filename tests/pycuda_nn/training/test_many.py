from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pycuda_nn as nn
from pycuda_nn.backends import load
from pycuda_nn.errors import CheckpointError, ConfigError, DataError
from pycuda_nn.layers import Activation, Dense
from pycuda_nn.network import Network
from pycuda_nn.training.facts import DataFacts

Parts = tuple[nn.Dataset, nn.Dataset, nn.Dataset]

CONFIGS = [
    nn.TrainConfig(hidden=(8,), epochs=3, seed=1),
    nn.TrainConfig(hidden=(8,), epochs=5, seed=2, lr=3e-3, l2=1e-3, dropout=0.3),
    nn.TrainConfig(hidden=(8, 4), epochs=2, optimizer="sgd", nesterov=True, lr=0.1),
    nn.TrainConfig(hidden=(), epochs=4, batch_size=7, scale="unit", schedule="cosine"),
]


def same(one: nn.TrainResult, other: object) -> None:
    assert isinstance(other, nn.TrainResult)
    assert np.array_equal(one.model.params, other.model.params)
    values = [[(r.epoch, r.train_loss, r.valid_loss) for r in of.history] for of in (one, other)]
    assert values[0] == values[1]


def test_each_network_is_that_of_train_bit_for_bit(parts: Parts) -> None:
    train, valid, _ = parts
    found = nn.train_many(CONFIGS, train, valid, backend="numpy")
    for config, result in zip(CONFIGS, found, strict=True):
        same(nn.train(config, train, valid, backend="numpy"), result)


def test_one_that_diverges_ends_alone(parts: Parts) -> None:
    train, valid, _ = parts
    wild = nn.TrainConfig(hidden=(8,), optimizer="sgd", lr=1e30, epochs=3)
    ended: list[int] = []
    first, bad, last = nn.train_many(
        [CONFIGS[0], wild, CONFIGS[1]],
        train,
        valid,
        backend="numpy",
        on_end=lambda number, _: ended.append(number),
    )
    assert isinstance(bad, nn.TrainingDiverged)
    assert ended == [1, 0, 2]
    same(nn.train(CONFIGS[0], train, valid, backend="numpy"), first)
    same(nn.train(CONFIGS[1], train, valid, backend="numpy"), last)


def test_patience_and_a_true_answer_end_single_networks(parts: Parts) -> None:
    train, valid, _ = parts
    patient = nn.TrainConfig(hidden=(8,), optimizer="sgd", lr=1e-9, epochs=50, patience=2)
    epochs: list[tuple[int, int]] = []

    def told(number: int, report: nn.EpochReport) -> bool:
        epochs.append((number, report.epoch))
        return number == 1 and report.epoch == 2

    one, two = nn.train_many([patient, CONFIGS[1]], train, valid, backend="numpy", on_epoch=told)
    same(nn.train(patient, train, valid, backend="numpy"), one)
    assert isinstance(two, nn.TrainResult)
    assert two.stopped_early
    assert [epoch for number, epoch in epochs if number == 1] == [1, 2]


def test_each_network_resumes_from_its_own_checkpoint(parts: Parts, tmp_path: Path) -> None:
    train, valid, _ = parts
    paths = [tmp_path / f"{number}.npz" for number in range(len(CONFIGS))]
    full = nn.train_many(CONFIGS, train, valid, backend="numpy")

    def stop(number: int, report: nn.EpochReport) -> None:
        if report.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        nn.train_many(CONFIGS, train, valid, backend="numpy", checkpoints=paths, on_epoch=stop)
    found = nn.train_many(CONFIGS, train, valid, backend="numpy", checkpoints=paths, resume=True)
    for one, other in zip(full, found, strict=True):
        assert isinstance(one, nn.TrainResult)
        same(one, other)
        assert nn.load_model(paths[full.index(one)]).params.shape == one.model.params.shape
    with pytest.raises(CheckpointError, match="different training"):
        nn.train_many(CONFIGS[::-1], train, valid, backend="numpy", checkpoints=paths, resume=True)


def test_targets_are_scaled_for_those_that_ask(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 3))
    data = nn.Dataset.from_arrays(x, 100 * x @ rng.normal(size=(3, 1)), name="line")
    train, valid, _ = nn.split(data, seed=1)
    configs = [nn.TrainConfig(scale_targets=name, epochs=2) for name in ("standard", "none")]
    found = nn.train_many(configs, train, valid, backend="numpy")
    for config, result in zip(configs, found, strict=True):
        same(nn.train(config, train, valid, backend="numpy"), result)


def test_wrong_lists_of_checkpoints_are_errors(parts: Parts, tmp_path: Path) -> None:
    train, valid, _ = parts
    with pytest.raises(ConfigError, match="4 configs, but 1 checkpoints"):
        nn.train_many(CONFIGS, train, valid, checkpoints=[None])
    with pytest.raises(ConfigError, match="same checkpoint file"):
        nn.train_many(CONFIGS[:2], train, valid, checkpoints=[tmp_path / "a", tmp_path / "a"])
    assert nn.train_many([], train, valid) == []


def test_another_host_than_the_first_writes_no_checkpoint(parts: Parts, tmp_path: Path) -> None:
    class OtherHost(load("numpy")):  # type: ignore[misc]
        saves = False

    train, valid, _ = parts
    files = [tmp_path / "one.npz", tmp_path / "two.npz"]
    nn.train_many(CONFIGS[:2], train, valid, checkpoints=files, backend=OtherHost())
    nn.train(CONFIGS[0], train, valid, checkpoint=files[0], backend=OtherHost())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("options", [{"gpus": 2}, {"hosts": 2, "meet": "folder"}], ids=str)
def test_several_networks_are_refused_on_several_gpus(options: dict[str, Any]) -> None:
    backend = nn.CudaBackend(nn.CudaOptions(**options))
    network = nn.Network.from_sizes((2, 3, 2))
    with pytest.raises(ConfigError, match="train on one GPU"):
        backend.open_many([network, network], [], {}, [])


def test_what_depends_on_the_rows_alone_is_computed_once(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pycuda_nn.data.scaling import Scaler
    from pycuda_nn.training import facts

    calls: list[str] = []
    fit, hashed = Scaler.fit, facts.fingerprint
    monkeypatch.setattr(Scaler, "fit", lambda x, kind: calls.append(kind) or fit(x, kind))
    monkeypatch.setattr(facts, "fingerprint", lambda data: calls.append(data.name) or hashed(data))
    train, valid, _ = parts
    nn.train_many(CONFIGS, train, valid, backend="numpy")
    assert sorted(calls) == sorted(["standard", "unit", train.name, valid.name])


def test_the_end_of_a_training_reads_only_parameters(parts: Parts) -> None:
    """The moments of all networks of a GPU are as large as their parameters."""
    numpy = load("numpy")

    class NoState(numpy):  # type: ignore[misc, valid-type]
        def open(self, *words: Any) -> Any:
            session = super().open(*words)
            session.state = None
            return session

    train, valid, _ = parts
    for patience in (None, 5):
        config = nn.TrainConfig(hidden=(8,), epochs=3, patience=patience)
        wanted = nn.train(config, train, valid, backend="numpy")
        same(wanted, nn.train(config, train, valid, backend=NoState()))
        same(wanted, nn.train_many([config], train, valid, backend=NoState())[0])


def test_a_layer_of_the_user_can_have_a_list(parts: Parts) -> None:
    @dataclass(frozen=True)
    class Scaled(Activation):
        scales: list[float] = field(default_factory=lambda: [1.0, 2.0])

    train, valid, _ = parts
    network = Network((Dense(5, 8), Scaled("relu"), Dense(8, 3)))
    result = nn.train(CONFIGS[0], train, valid, network=network, backend="numpy")
    assert len(result.history) == 3


def test_what_is_no_dataset_or_no_settings_is_named(parts: Parts) -> None:
    train, valid, _ = parts
    with pytest.raises(DataError, match="train is of type ndarray") as caught:
        nn.train(CONFIGS[0], train.x, train.y)  # type: ignore[arg-type]
    assert "from_arrays" in caught.value.fix
    with pytest.raises(DataError, match="valid is of type tuple"):
        nn.train_many(CONFIGS, train, (valid.x, valid.y))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="of type dict"):
        nn.train_many([{"lr": 1e-3}], train)  # type: ignore[list-item]
    with pytest.raises(ConfigError, match="of type Dataset"):
        nn.train(train, CONFIGS[0])  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="not several"):
        nn.train_many(CONFIGS[0], train)  # type: ignore[arg-type]


def test_the_settings_can_come_from_a_generator(parts: Parts) -> None:
    found = nn.train_many((config for config in CONFIGS[:2]), parts[0], backend="numpy")
    assert [len(result.history) for result in found] == [3, 5]


def test_initial_parameters_are_those_of_each_seed_and_belong_to_the_caller(parts: Parts) -> None:
    train, valid, _ = parts
    facts, network = DataFacts(train, valid), Network.from_sizes((5, 8, 3), loss="softmax")
    first = facts.initial_params(network, 1)
    first[:] = 7.0
    for seed in (1, 1, 2, 1):
        want = network.initial_params(seed)
        np.testing.assert_array_equal(facts.initial_params(network, seed), want)
