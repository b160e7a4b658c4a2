"""Run trials as Slurm jobs: :class:`SlurmDriver`, and its queue :class:`Slurm`."""

from spearmint.drivers.slurm.driver import Slurm, SlurmDriver

__all__ = ["Slurm", "SlurmDriver"]
