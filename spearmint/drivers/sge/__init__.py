"""Run trials as Grid Engine jobs: :class:`SgeDriver`, and its queue :class:`GridEngine`."""

from spearmint.drivers.sge.driver import GridEngine, SgeDriver

__all__ = ["GridEngine", "SgeDriver"]
