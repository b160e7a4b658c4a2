"""Run trials as HTCondor jobs: :class:`HTCondorDriver`, and its queue :class:`HTCondor`."""

from spearmint.drivers.htcondor.driver import HTCondor, HTCondorDriver

__all__ = ["HTCondor", "HTCondorDriver"]
