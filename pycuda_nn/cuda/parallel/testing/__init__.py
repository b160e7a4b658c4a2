"""The rules of :class:`GradientExchange` as tests: subclass :class:`ExchangeContract`.

::

    class TestMine(ExchangeContract):
        def exchange(self, plan, parts, connection):
            return MyExchange(*parts)
"""

from __future__ import annotations

from pycuda_nn.cuda.parallel.testing.contract import ExchangeContract

__all__ = ["ExchangeContract"]
