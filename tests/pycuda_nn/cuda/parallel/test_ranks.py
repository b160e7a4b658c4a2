"""Threads of ranks: order, failures of one and of several, ranks that hang, interrupts."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pycuda_nn.cuda.parallel.ranks import RankFailed, Ranks, RankStopped
from pycuda_nn.errors import ConfigError, DeviceError, OutOfDeviceMemory


class Group:
    """Ranks whose waits end when they are stopped."""

    def __init__(self, size: int = 3) -> None:
        self.stops = 0
        self.stopped = threading.Event()
        self.ranks: Ranks[list[int]] = Ranks([f"GPU {n} (H200)" for n in range(size)], self._stop)
        self.ranks.make(lambda rank: [rank])

    def _stop(self) -> None:
        self.stops += 1
        self.stopped.set()

    def wait(self) -> None:
        """Wait as a kernel for another GPU: until the ranks are stopped."""
        self.stopped.wait()
        raise RankStopped

    def fail(self, errors: dict[int, BaseException]) -> None:
        """Let these ranks raise, while the others wait."""

        def call(worker: list[int]) -> None:
            if worker[0] in errors:
                raise errors[worker[0]]
            self.wait()

        self.ranks.each(call)


@pytest.fixture
def group() -> Iterator[Group]:
    group = Group()
    yield group
    group.ranks.end()
    assert not [thread for thread in group.ranks._threads if thread.is_alive()]


def test_answers_are_in_the_order_of_the_ranks(group: Group) -> None:
    last_first = [threading.Event() for _ in range(4)]
    last_first[3].set()

    def call(worker: list[int]) -> int:
        last_first[worker[0] + 1].wait()
        last_first[worker[0]].set()
        return 10 * worker[0]

    assert group.ranks.each(call) == [0, 10, 20]
    assert group.ranks.each(lambda worker: worker[0], only=[2, 0]) == [2, 0]


def test_each_rank_has_one_thread_for_its_whole_life(group: Group) -> None:
    names = [group.ranks.each(lambda _: threading.current_thread().name) for _ in range(3)]
    assert names == [["GPU 0", "GPU 1", "GPU 2"]] * 3
    idents = [group.ranks.each(lambda _: threading.get_ident()) for _ in range(3)]
    assert idents[0] == idents[1] == idents[2]
    assert len(set(idents[0])) == 3


def test_a_rank_that_fails_stops_the_others(group: Group) -> None:
    with pytest.raises(RankFailed) as caught:
        group.fail({1: DeviceError("an illegal address", "Check nvidia-smi.")})
    assert caught.value.what == "GPU 1 (H200): an illegal address; the other GPUs were stopped"
    assert caught.value.fix.startswith("Check nvidia-smi.\n")
    assert "--resume" in caught.value.fix
    assert (caught.value.rank, caught.value.exit_code, group.stops) == (1, 1, 1)
    assert group.ranks.stopped
    assert not group.ranks.stuck


def test_a_message_does_not_name_a_gpu_or_the_advice_twice() -> None:
    error = RankFailed(1, "GPU 1 (H200)", "GPU 1, H200: lost", "Continue with --resume.")
    assert error.what == "GPU 1, H200: lost; the other GPUs were stopped"
    assert error.fix == "Continue with --resume."


def test_two_that_fail_at_once_give_one_error_and_one_stop(group: Group) -> None:
    both = threading.Barrier(2)

    def call(worker: list[int]) -> None:
        if worker[0] == 1:
            group.wait()
        both.wait()
        raise DeviceError(f"broken {worker[0]}")

    with pytest.raises(RankFailed, match=r"GPU (\d) .*: broken \1;"):
        group.ranks.each(call)
    assert group.stops == 1


def test_the_rank_that_failed_by_itself_is_named_whoever_ends_first(group: Group) -> None:
    others = threading.Event()

    def call(worker: list[int]) -> None:
        if worker[0] == 0:  # is stopped, and answers before rank 2 does
            try:
                group.wait()
            finally:
                others.set()
        if worker[0] == 2:
            group.ranks.stop()
            others.wait()
            raise DeviceError("the cause")

    with pytest.raises(RankFailed, match=r"GPU 2 .*the cause"):
        group.ranks.each(call)


@pytest.mark.parametrize(
    "error", [ConfigError("too small"), RuntimeError("broken"), KeyError("x")], ids=str
)
def test_errors_that_are_not_of_a_gpu_stay_as_they_are(group: Group, error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        group.fail({2: error})
    assert caught.value is error
    assert group.stops == 1


def test_a_gpu_without_enough_memory_is_named(group: Group) -> None:
    with pytest.raises(OutOfDeviceMemory, match=r"2.*out of GPU memory") as caught:
        group.fail({2: OutOfDeviceMemory("rows", 1 << 30, 1 << 20, limited=False)})
    assert "the other GPUs were stopped" in str(caught.value)
    assert caught.value.needed_bytes == 1 << 30


def test_after_a_failure_the_ranks_can_still_be_closed(group: Group) -> None:
    with pytest.raises(RankFailed):
        group.fail({0: DeviceError("broken")})
    assert group.ranks.each(lambda worker: worker[0]) == [0, 1, 2]
    assert group.stops == 1


def test_a_reason_of_the_host_is_raised_if_no_rank_failed_by_itself(group: Group) -> None:
    lost = DeviceError("another host was lost")
    threading.Thread(target=lambda: group.ranks.stop(lost)).start()
    with pytest.raises(DeviceError) as caught:
        group.ranks.each(lambda _: group.wait())
    assert caught.value is lost


def test_a_rank_that_hangs_is_named_with_the_cause(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pycuda_nn.cuda.parallel.ranks._STOP_LIMIT_S", 0.05)
    release = threading.Event()

    def call(worker: list[int]) -> None:
        if worker[0] == 0:
            release.wait()  # in the driver, where no word of the host helps
        if worker[0] == 1:
            raise DeviceError("an illegal address")
        group.wait()

    with pytest.raises(RankFailed, match=r"GPU 0 .*does not answer") as caught:
        group.ranks.each(call)
    assert caught.value.what.startswith("GPU 0 (H200): does not answer after GPU 1 (H200) failed: ")
    assert "an illegal address" in caught.value.what
    assert group.ranks.stuck
    group.ranks.end()  # does not wait for rank 0
    assert group.ranks._threads[0].is_alive()
    release.set()
    group.ranks._threads[0].join()  # ends as soon as it comes back
    group.ranks._busy.clear()


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt also in the background of a shell, which ignores SIGINT there."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_of_the_caller_stops_all_ranks() -> None:
    for _ in range(5):  # it can come before the caller waits, or while it waits
        group = Group()

        def call(worker: list[int], group: Group = group) -> None:
            if worker[0] == 2:  # the last one that was called
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            group.wait()

        with pytest.raises(KeyboardInterrupt):
            group.ranks.each(call)
        assert group.stops == 1
        assert not group.ranks.stuck
        group.ranks.end()


def test_an_error_does_not_keep_objects_of_its_thread(group: Group) -> None:
    class Held:
        def __del__(self) -> None:
            ended.append(threading.current_thread().name)

    ended: list[str] = []

    def call(worker: list[int]) -> None:
        held: Any = Held() if worker[0] == 1 else None
        if held:
            raise DeviceError("broken")
        group.wait()

    with pytest.raises(RankFailed):
        group.ranks.each(call)
    assert ended == ["GPU 1"]


def test_workers_end_in_their_threads() -> None:
    ended: list[str] = []

    class Worker:
        def __del__(self) -> None:
            ended.append(threading.current_thread().name)

    ranks: Ranks[Worker] = Ranks(["a", "b"], lambda: None)
    ranks.make(lambda _: Worker())
    ranks.end()
    assert sorted(ended) == ["GPU 0", "GPU 1"]
