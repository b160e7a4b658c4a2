"""The built-in kernels pass the contract of an exchange on fake GPUs, with ranks as threads."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.pycuda_nn.cuda.parallel.fakes.drivers import faked_drivers
from tests.pycuda_nn.cuda.parallel.fakes.gpu import MACHINE, Operation, reset

_TESTS = (
    "test_the_update_is_that_of_the_sum",
    "test_the_copies_are_equal",
    "test_ranks_may_be_turns_ahead",
    "test_a_stop_ends_all_waits",
)

if TYPE_CHECKING:
    from tests.pycuda_nn.cuda.parallel.fakes.emulation import Emulation


@pytest.fixture(scope="module")
def contract(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    built: dict[bytes, Emulation] = {}
    with faked_drivers(), pytest.MonkeyPatch.context() as patch:
        from pycuda_nn.cuda.parallel import exchange, room, structs, testing
        from pycuda_nn.cuda.parallel.peers import enable_access
        from pycuda_nn.cuda.runtime import module
        from tests.pycuda_nn.cuda.parallel.fakes.emulation import Emulation

        def build(source: str, arch: str, options: list[str]) -> bytes:
            return json.dumps(options).encode()

        def kernels(code: bytes) -> Emulation:
            if code not in built:
                options = json.loads(code)
                built[code] = Emulation(options, exchange.FILES, tmp_path_factory.mktemp("kernels"))
            return built[code]

        def run(operations: list[Operation]) -> None:
            (code,) = {one.meaning[0] for one in operations if one.name != "copy"}
            host = next(one for one in operations if one.name == "exchange").arguments
            at = structs.Exchange.from_buffer_copy(host).host
            words = np.frombuffer((ctypes.c_char * 8).from_address(at), np.uint32)
            ended = kernels(code).run(operations, _host, ranks=2, words=words)
            assert ended == len(operations), "deadlock"

        patch.setattr(module, "build", build)
        patch.setattr(exchange, "THREADS", 64)
        patch.setattr(room, "THREADS", 64)
        reset(gpus=2)
        MACHINE.run = run

        class Contract(testing.ExchangeContract):
            def exchange(self, plan: Any, parts: Any, connection: Any) -> Any:
                enable_access(range(self.size), parts[-1].rank)
                return exchange.PeerExchange(*parts)

        yield Contract()
        assert not MACHINE.allocations, "memory that was not freed"
        reset()


def _host(operation: Operation, end: bool) -> None:
    assert operation.name == "copy"
    if end:
        ctypes.memmove(*operation.arguments)


@pytest.mark.parametrize("name", _TESTS)
def test_contract(contract: Any, name: str) -> None:
    getattr(contract, name)()


def test_all_tests_of_the_contract_run(contract: Any) -> None:
    assert {name for name in dir(contract) if name.startswith("test_")} == set(_TESTS)
