"""How busy the GPUs of a trial are, sampled by a process next to the trial; standard library only.

The runner starts the monitor if the trial has GPUs and the package nvidia-ml-py is installed. The
monitor writes ``gpu_use.json`` in the folder of the trial, also if the trial is killed.
"""

from spearmint.trial.gpu_use.record import gpu_use_of

__all__ = ["gpu_use_of"]
