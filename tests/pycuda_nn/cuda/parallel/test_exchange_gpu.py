"""Both exchanges pass the contract of an exchange on two GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

pytestmark = pytest.mark.gpu(n=2)


def _peer() -> Any:
    from pycuda_nn.cuda.parallel.exchange import PeerExchange
    from pycuda_nn.cuda.parallel.peers import enable_access
    from pycuda_nn.cuda.parallel.testing import ExchangeContract

    class Peer(ExchangeContract):
        def exchange(self, plan: Any, parts: Any, connection: Any) -> Any:
            enable_access(range(self.size), parts[-1].rank)
            return PeerExchange(*parts)

    return Peer()


def _nccl() -> Any:
    from pycuda_nn.cuda.parallel.nccl import NcclExchange, communicators
    from pycuda_nn.cuda.parallel.testing import ExchangeContract

    class Nccl(ExchangeContract):
        whole_shards = True

        def connections(self) -> Sequence[Any]:
            return communicators(range(self.size))

        def exchange(self, plan: Any, parts: Any, connection: Any) -> Any:
            exchange = NcclExchange(*parts, communicator=connection)
            exchange.warm(plan.layout.layers)
            return exchange

    return Nccl()


@pytest.mark.parametrize("exchange", [_peer, _nccl], ids=["peer", "nccl"])
def test_contract(exchange: Any) -> None:
    contract = exchange()
    for name in dir(contract):
        if name.startswith("test_"):
            getattr(contract, name)()
