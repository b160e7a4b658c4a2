"""GPUs of host memory, whose streams keep what is queued, and the classes of a fake PyCUDA.

An operation knows the operations that must end before it starts. A recorded graph checks what the
driver would refuse: work on a stream that has not joined, an event from outside, an end that does
not wait for everything.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(eq=False)
class Operation:
    """Something queued on a stream.

    Attributes:
        rank: The GPU.
        name: Name of the kernel.
        meaning: What a test knows of it.
        arguments: Argument of the kernel.
        after: Operations that end before it starts.
    """

    rank: int
    name: str
    after: frozenset[Operation]
    meaning: tuple[Any, ...] = ()
    arguments: Any = None
    blocks: int = 1
    threads: int = 1
    capture: int = 0


@dataclass
class Capture:
    number: int
    origin: Stream
    joined: dict[Stream, frozenset[Operation]] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)


class Machine:
    """All GPUs, and the operations on them in the order in which they were queued."""

    def __init__(self, gpus: int = 4) -> None:
        self.gpus = gpus
        self.operations: list[Operation] = []
        self.allocations: dict[int, tuple[int, np.ndarray[Any, Any]]] = {}  # of which GPU
        self.sizes: dict[int, int] = {}  # bytes of GPUs that are small
        self.streams: dict[int, Stream] = {}
        self.numbers = itertools.count(1)
        self.meaning: tuple[Any, ...] = ()
        self.run: Callable[[list[Operation]], None] | None = None  # at a synchronize, if given
        self._lock, self._running = threading.Lock(), threading.Lock()
        self._local = threading.local()

    @property
    def stack(self) -> list[int]:
        if not hasattr(self._local, "stack"):
            self._local.stack = []
        found: list[int] = self._local.stack
        return found

    @property
    def capture(self) -> Capture | None:
        return getattr(self._local, "capture", None)

    @contextmanager
    def on(self, rank: int) -> Iterator[None]:
        """Make a GPU current."""
        self.stack.append(rank)
        try:
            yield
        finally:
            self.stack.pop()

    def free_bytes(self) -> int:
        """Return the free memory of the current GPU."""
        rank = self.stack[-1]
        used = sum(memory.nbytes for owner, memory in self.allocations.values() if owner == rank)
        return self.sizes.get(rank, 1 << 36) - used

    def allocate(self, n_bytes: int) -> int:
        memory = np.zeros(n_bytes + 256, np.uint8)
        address = -(-memory.ctypes.data // 256) * 256
        self.allocations[address] = (self.stack[-1], memory)
        return address

    def queue(self, stream: Stream, name: str, **more: Any) -> Operation:
        capture = self.capture
        operation = Operation(
            rank=stream.rank, name=name, after=stream.tail,
            **{"meaning": self.meaning, "capture": capture.number if capture else 0, **more},
        )  # fmt: skip
        if capture is None:
            with self._lock:
                self.operations.append(operation)
        else:
            assert stream in capture.joined, "work on a stream that has not joined the capture"
            capture.operations.append(operation)
        stream.tail = frozenset({operation})
        return operation

    def synchronize(self) -> None:
        """Run what all GPUs have queued: any of it can wait for any other."""
        assert self.capture is None, "a capture cannot wait for the GPU"
        if self.run is None:
            return
        with self._running:
            with self._lock:
                operations, self.operations = self.operations, []
            if operations:
                self.run(operations)

    def begin(self, stream: Stream) -> None:
        assert self.capture is None
        self._local.capture = Capture(next(self.numbers), stream, {stream: stream.tail})
        stream.tail = frozenset()

    def end(self) -> Capture:
        capture = self.capture
        assert capture is not None
        self._local.capture = None
        seen: set[Operation] = set()
        left = list(capture.origin.tail)
        while left:
            one = left.pop()
            if one not in seen:
                seen.add(one)
                left += one.after
        missing = [one.meaning or one.name for one in capture.operations if one not in seen]
        assert not missing, f"unjoined: {missing}"
        capture.tail = capture.origin.tail  # type: ignore[attr-defined]
        for joined, tail in capture.joined.items():
            joined.tail = tail
        return capture

    def launch(self, capture: Any, stream: Stream) -> None:
        new: dict[Operation, Operation] = {}
        for old in capture.operations:
            after = frozenset(new[one] for one in old.after) or stream.tail
            new[old] = Operation(
                old.rank, old.name, after, old.meaning, old.arguments, old.blocks, old.threads
            )
        with self._lock:
            self.operations += new.values()
        stream.tail = frozenset(new[one] for one in capture.tail) or stream.tail


class Stream:
    def __init__(self) -> None:
        self.rank = MACHINE.stack[-1]
        self.tail: frozenset[Operation] = frozenset()
        self.handle = next(MACHINE.numbers)
        MACHINE.streams[self.handle] = self

    def wait_for_event(self, event: Event) -> None:
        assert event.tail is not None, "an event that was never recorded"
        capture = MACHINE.capture
        outside = [one for one in event.tail if one.capture != (capture.number if capture else 0)]
        assert not outside, "an event from outside of the capture"
        if capture is not None and self not in capture.joined:
            capture.joined[self], self.tail = self.tail, frozenset()
        self.tail |= event.tail

    def synchronize(self) -> None:
        MACHINE.synchronize()


class Event:
    def __init__(self, flags: int = 0) -> None:
        self.tail: frozenset[Operation] | None = None

    def record(self, stream: Stream) -> None:
        self.tail = stream.tail

    def synchronize(self) -> None:
        assert self.tail is not None
        MACHINE.synchronize()


class Context:
    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal

    def push(self) -> None:
        MACHINE.stack.append(self.ordinal)

    def pop(self) -> None:
        assert MACHINE.stack.pop() == self.ordinal

    def synchronize(self) -> None:
        MACHINE.synchronize()


class Device:
    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal

    @staticmethod
    def count() -> int:
        return MACHINE.gpus

    def name(self) -> str:
        return "Fake"

    def pci_bus_id(self) -> str:
        return f"0000:{self.ordinal:02x}:00.0"

    def compute_capability(self) -> tuple[int, int]:
        return (9, 0)

    def get_attribute(self, attribute: int) -> int:
        return attribute

    def retain_primary_context(self) -> Context:
        return Context(self.ordinal)


class Allocation(int):
    def free(self) -> None:
        del MACHINE.allocations[int(self)]


class Function:
    """A kernel of a module; what was compiled tells which."""

    def __init__(self, code: bytes, name: str) -> None:
        self.code, self.name = code, name

    def prepare(self, types: list[str]) -> Function:
        self.types = types
        return self

    def prepared_async_call(self, grid: Any, block: Any, stream: Stream, *arguments: Any) -> None:
        assert len(arguments) == len(self.types)
        MACHINE.queue(
            stream, self.name, arguments=arguments[0], blocks=grid[0], threads=block[0],
            meaning=(self.code,),
        )  # fmt: skip


class Module:
    def __init__(self, code: bytes) -> None:
        self._code = code

    def get_function(self, name: str) -> Function:
        return Function(self._code, name)


MACHINE = Machine()


def reset(gpus: int = 4) -> None:
    """Forget all memory and work."""
    MACHINE.__init__(gpus)  # type: ignore[misc]
