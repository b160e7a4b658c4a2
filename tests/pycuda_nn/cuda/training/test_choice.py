"""The fastest path is found by time, once, and the log says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pycuda_nn.cuda.stack import DenseStack, recognise
from pycuda_nn.cuda.step.agreement import COARSE, FINE, Tolerance
from pycuda_nn.cuda.tiny.plan import TinyPlan
from pycuda_nn.cuda.training.choice import Paths
from pycuda_nn.errors import OutOfDeviceMemory
from pycuda_nn.network import Network


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYCUDA_NN_CACHE", str(tmp_path))


def plan_of(sizes: tuple[int, ...] = (32, 64, 2), batch: int = 16) -> TinyPlan:
    stack = recognise(Network.from_sizes(sizes))
    assert isinstance(stack, DenseStack)
    return TinyPlan(stack=stack, batch=batch, precision="float32", optimizer=0)


class Trial:
    """Paths whose epochs are their names; counts what is made."""

    def __init__(self, seconds: dict[str, float], *, tune: bool = True) -> None:
        self.made: list[str] = []
        self.paths = Paths(seconds.__getitem__, "a GPU", "a network", tune=tune)  # type: ignore[arg-type]

    def make(self, name: str) -> Any:
        def made() -> str:
            self.made.append(name)
            return name

        return made

    def fastest(
        self,
        plan: TinyPlan | None = None,
        first: str = "captured step",
        *,
        preferred: bool = False,
    ) -> Any:
        self.paths.add(first, self.make("captured"), "Adam is not supported", source="a step")
        self.paths.add_tiny(plan or plan_of(), self.make("tiny"), preferred=preferred)
        return self.paths.fastest("a network")


def test_takes_the_faster_and_times_only_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="pycuda_nn")
    first = Trial({"captured": 16e-6, "tiny": 3e-6})
    assert first.fastest() == "tiny"
    assert first.made == ["captured", "tiny"]
    again = Trial({})  # a time would be a KeyError
    assert again.fastest() == "tiny"
    assert again.made == ["tiny"]
    one, two = caplog.messages
    assert one == two
    assert one == (
        "training path: tiny kernel, 1 block (a network): tiny kernel, 1 block 3.0, "
        "captured step 16.0 us a step"
    )


def test_the_captured_step_says_why_it_is_used(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="pycuda_nn")
    assert Trial({"captured": 14e-6, "tiny": 19e-6}).fastest() == "captured"
    (line,) = caplog.messages
    assert line.startswith("training path: captured step (a network): Adam is not supported; ")
    assert line.endswith("captured step 14.0, tiny kernel, 1 block 19.0 us a step")


def test_another_plan_is_timed_again() -> None:
    assert Trial({"captured": 16e-6, "tiny": 3e-6}).fastest() == "tiny"
    other = Trial({"captured": 16e-6, "tiny": 30e-6})
    assert other.fastest(plan_of((32, 65, 2))) == "captured"


def test_nothing_is_timed_if_that_is_forbidden() -> None:
    """A rule then decides, so that every machine takes the same path."""
    assert Trial({}, tune=False).fastest() == "tiny"
    assert Trial({}, tune=False).fastest(plan_of((128, 200, 2), 200)) == "captured"
    assert Trial({}, tune=False).fastest(first="persistent kernel") == "captured"
    assert Trial({}, tune=False).fastest(first="persistent kernel", preferred=True) == "tiny"


def test_a_path_without_enough_memory_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="pycuda_nn")

    def full() -> Any:
        raise OutOfDeviceMemory("the exchange", 1 << 20, 1 << 10, limited=True)

    for tune in (True, False):
        trial = Trial({"captured": 16e-6}, tune=tune)
        trial.paths.add("captured step", trial.make("captured"), source="a step")
        trial.paths.add_tiny(plan_of(), full)
        assert trial.paths.fastest("a network") == "captured"
        assert "no tiny kernel, 1 block: " in caplog.messages[-1]
        assert "the exchange" in caplog.messages[-1]
    assert Trial({"captured": 16e-6, "tiny": 3e-6}).fastest() == "tiny"  # the cache kept nothing
    later = Trial({})
    later.paths.add("captured step", later.make("captured"), source="a step")
    later.paths.add_tiny(plan_of(), full)
    assert later.paths.fastest("a network") == "captured"


def test_no_memory_for_any_path_is_an_error() -> None:
    def full() -> Any:
        raise OutOfDeviceMemory("the parameters", 1 << 20, 1 << 10, limited=True)

    for tune in (True, False):
        for others in (["captured step"], ["persistent kernel", "captured step"]):
            trial = Trial({}, tune=tune)
            for path in others:
                trial.paths.add(path, full, source="a step")
            with pytest.raises(OutOfDeviceMemory):
                trial.paths.fastest("a network")


def test_no_memory_for_any_path_is_an_error_if_the_fastest_is_known() -> None:
    def full() -> Any:
        raise OutOfDeviceMemory("the parameters", 1 << 20, 1 << 10, limited=True)

    assert Trial({"captured": 16e-6, "tiny": 3e-6}).fastest() == "tiny"
    later = Trial({})
    later.paths.add("captured step", full, source="a step")
    later.paths.add_tiny(plan_of(), full)
    with pytest.raises(OutOfDeviceMemory):
        later.paths.fastest("a network")


class Three(Trial):
    """A persistent kernel, and a captured step that can be tuned."""

    def fastest(self, plan: TinyPlan | None = None, first: str = "captured step") -> Any:
        self.paths.add("persistent kernel", self.make("persistent"), source="a kernel")
        self.paths.add(first, self.make("tuned"), source="a step", plain=self.make("plain"))
        return self.paths.fastest("a network")


def test_a_close_captured_step_is_tuned_before_it_is_compared() -> None:
    paths = Three({"persistent": 20e-6, "plain": 21e-6, "tuned": 19e-6})
    assert paths.fastest() == "tuned"
    assert paths.made == ["persistent", "plain", "tuned"]
    again = Three({})
    assert again.fastest() == "tuned"
    assert again.made == ["tuned"]


def test_tuning_is_skipped_if_it_cannot_matter(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="pycuda_nn")
    paths = Three({"persistent": 10e-6, "plain": 30e-6})
    assert paths.fastest() == "persistent"
    assert paths.made == ["persistent", "plain"]
    assert caplog.messages[0].endswith("persistent kernel 10.0, captured step 30.0 us a step")


def test_a_captured_step_alone_is_tuned() -> None:
    paths = Trial({})
    paths.paths.add(
        "captured step", paths.make("tuned"), source="a step", plain=paths.make("plain")
    )
    assert paths.paths.fastest("a network") == "tuned"


@pytest.mark.parametrize("changed", ["captured step", "fused step"])
def test_a_choice_among_other_kernels_is_timed_again(changed: str) -> None:
    seconds = {"captured step": 20e-6, "fused step": 10e-6}

    def chosen(**sources: str) -> Any:
        trial = Trial(seconds)
        for path in ("fused step", "captured step"):
            source = sources.get(path.partition(" ")[0], "a kernel")
            trial.paths.add(path, trial.make(path), source=source)
        return trial.paths.fastest("several networks")

    assert chosen() == "fused step"
    seconds["captured step"] = 5e-6
    assert chosen() == "fused step"  # from the cache
    assert chosen(**{changed.partition(" ")[0]: "another kernel"}) == "captured step"


@pytest.mark.parametrize(
    ("tiny", "tolerance", "chosen"),
    [(1.0, FINE, "tiny"), (0.9, FINE, "captured"), (0.9, COARSE, "tiny"), (0, COARSE, "captured")],
)
def test_a_path_whose_gradients_differ_from_the_captured_step_is_not_used(
    caplog: pytest.LogCaptureFixture, tiny: float, tolerance: Tolerance, chosen: str
) -> None:
    moments = {"captured": np.ones(3, np.float32), "tiny": np.float32([tiny, tiny, tiny])}
    for _ in range(2):  # the second time from the cache
        trial = Trial({"captured": 16e-6, "tiny": 3e-6})
        trial.paths = Paths(
            {"captured": 16e-6, "tiny": 3e-6}.__getitem__,  # type: ignore[arg-type]
            "a GPU",
            "a network",
            tune=True,
            gradients=lambda epoch: [moments[epoch]],  # type: ignore[index]
            tolerance=tolerance,
        )
        made = trial.make("captured")
        trial.paths.add("captured step", made, source="a step", plain=made)
        trial.paths.add_tiny(plan_of(), trial.make("tiny"))
        assert trial.paths.fastest("a network") == chosen
    warnings = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert len(warnings) == (chosen == "captured")
    assert all("tiny kernel, 1 block" in text for text in warnings)


def test_a_captured_step_instead_of_a_path_with_other_gradients_is_tuned() -> None:
    moments = {"persistent": np.zeros(3, np.float32), "plain": np.ones(3, np.float32)}
    for made in (["persistent", "plain", "tuned"], ["tuned"]):  # the second time from the cache
        trial = Three({})
        trial.paths = Paths(
            {"persistent": 10e-6, "plain": 30e-6}.__getitem__,  # type: ignore[arg-type]
            "a GPU",
            "a network",
            tune=True,
            gradients=lambda epoch: [moments[epoch]],  # type: ignore[index]
        )
        assert trial.fastest() == "tuned"
        assert trial.made == made
