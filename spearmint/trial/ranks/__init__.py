"""Trials in several processes that torchrun starts: one rank for each GPU.

The runner starts a guard, the guard torchrun, torchrun a keeper for each rank, and the keeper
forks the process that calls the user's code. Whichever of them is killed, all others end: the
kernel kills a process whose parent died, and the guard ends what these left, such as data loaders.
Only the standard library, and torch in one module.
"""
