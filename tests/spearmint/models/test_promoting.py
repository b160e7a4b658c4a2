"""The current model is never torn, and never replaced by a worse one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from spearmint.errors import SpearmintError
from spearmint.models import ModelStore
from spearmint.models.promoting import promote


def add(store: ModelStore, number: int, value: float, error: float | None = None) -> None:
    path = store.path(number)
    path.mkdir(parents=True)
    metrics = {"value": value} if error is None else {"value": value, "standard_error": error}
    (path / "metrics.json").write_text(json.dumps(metrics))


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "us")


def test_without_a_version_there_is_no_decision(store: ModelStore) -> None:
    assert promote(store, maximize=False) is None
    assert store.current() is None


@pytest.mark.parametrize(
    ("value", "error", "maximize", "promotes"),
    [
        (0.30, 0.01, False, True),
        (0.30, 0.20, False, False),
        (0.39, None, False, False),  # within the error of the current model
        (0.50, 0.01, False, False),
        (0.40, 0.00, False, False),
        (0.50, 0.01, True, True),
        (0.30, 0.01, True, False),
        (float("inf"), None, True, False),
    ],
)
def test_only_a_gain_above_the_standard_error_promotes(
    store: ModelStore, value: float, error: float | None, maximize: bool, promotes: bool
) -> None:
    add(store, 1, 0.40, 0.02)
    assert promote(store, maximize=maximize).promotes
    add(store, 2, value, error)
    dry = promote(store, maximize=maximize, dry_run=True)
    assert dry.promotes is promotes
    assert store.current().number == 1, "a dry run changed the link"
    assert promote(store, maximize=maximize).to_json()["promoted"] is promotes
    assert store.current().number == (2 if promotes else 1)
    assert not promote(store, maximize=maximize).promotes


def test_a_rollback_is_not_undone_by_the_next_promotion(store: ModelStore) -> None:
    for number, value in ((1, 0.4), (2, 0.3), (3, 0.2)):
        add(store, number, value)
        promote(store, maximize=False)
    left, current = store.roll_back()
    assert (left.number, current.number, store.current().number) == (3, 2, 2)
    assert not promote(store, maximize=False).promotes
    assert promote(store, maximize=False, number=3).promotes
    assert store.current().number == 3
    store.roll_back()
    store.roll_back()
    with pytest.raises(SpearmintError):
        store.roll_back()
    assert store.current().number == 1


def test_a_rollback_goes_to_the_version_before_whatever_its_number(store: ModelStore) -> None:
    for number, value in ((1, 0.4), (2, 0.2)):
        add(store, number, value)
        promote(store, maximize=False)
    store.roll_back()
    add(store, 3, 0.3)
    promote(store, maximize=False)
    promote(store, maximize=False, number=2)
    numbers = [store.roll_back()[1].number for _ in range(2)]
    assert numbers == [3, 1]


def test_damaged_metrics_are_named_and_nothing_changes(store: ModelStore) -> None:
    add(store, 1, 0.4)
    promote(store, maximize=False)
    add(store, 2, 0.3)
    (store.path(2) / "metrics.json").write_text("{")
    with pytest.raises(SpearmintError, match=r"metrics\.json"):
        promote(store, maximize=False)
    assert store.current().number == 1


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_decisions_before_a_failure_are_printed(tmp_path: Path, form: tuple[str, ...]) -> None:
    regions = "".join(f'region: "{name}"\n' for name in ("eu", "us"))
    variable = 'variable { name: "x" type: FLOAT min: 0 max: 1 }\n'
    (tmp_path / "config.pb").write_text(f'language: PYTHON\nname: "f"\n{variable}{regions}')
    add(ModelStore(tmp_path / "models" / "eu"), 1, 0.4)
    damaged = ModelStore(tmp_path / "models" / "us")
    add(damaged, 1, 0.4)
    (damaged.path(1) / "metrics.json").write_text("{")
    command = [sys.executable, "-m", "spearmint", "promote", *form, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "metrics.json" in done.stderr
    if form:
        assert [each["region"] for each in json.loads(done.stdout)] == ["eu"]
    else:
        assert done.stdout == "eu: version 1 promoted: it is the first\n"
    assert ModelStore(tmp_path / "models" / "eu").current().number == 1


def test_a_directory_in_the_place_of_the_link_is_named(store: ModelStore) -> None:
    add(store, 1, 0.4)
    (store.folder / "current").mkdir()
    with pytest.raises(SpearmintError, match="current"):
        promote(store, maximize=False)


_KILLED = """
import os, sys
from pathlib import Path
from spearmint.models import ModelStore
from spearmint.models.promoting import promote

left = int(sys.argv[1])
def count(event, _):
    global left
    if event.partition(".")[0] in ("open", "os"):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), 9)
store = ModelStore(Path(sys.argv[2]))
sys.addaudithook(count)
store.roll_back() if sys.argv[3] == "back" else promote(store, maximize=False)
left = 10**6
"""


@pytest.mark.parametrize("step", ["forth", "back"])
def test_a_kill_at_each_step_leaves_the_old_or_the_new_model(store: ModelStore, step: str) -> None:
    """The second call ends what the killed one began."""
    add(store, 1, 0.4)
    promote(store, maximize=False)
    add(store, 2, 0.3)
    if step == "back":
        promote(store, maximize=False)
    allowed = {1, 2}
    for instant in range(100):
        argv = [sys.executable, "-c", _KILLED, str(instant), str(store.folder), step]
        killed = subprocess.run(argv, check=False).returncode
        current = store.current()
        assert current is not None
        assert current.number in allowed
        assert current.value in (0.4, 0.3)
        if killed == 0:
            break
    assert instant > 3
    assert store.current().number == (2 if step == "forth" else 1)
