"""Run trials as Grid Engine jobs."""

from spearmint.drivers.sge.driver import SgeDriver

__all__ = ["SgeDriver"]
