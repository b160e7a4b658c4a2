"""Compare the settings of a checkpoint with those that continue it."""

from __future__ import annotations

from pycuda_nn.config import TrainConfig
from pycuda_nn.training.large_batch import step_settings


def changed_settings(old: TrainConfig, new: TrainConfig) -> list[str]:
    """Return a line for each setting with which the finished epochs had been different.

    The number of ``epochs`` can differ if the learning rates do not depend on it.
    """
    before, now = old.as_dict(), new.as_dict()
    free = _free_settings(old, new)
    changes = [
        f"{key}: {before[key]!r} in the checkpoint, {now[key]!r} now"
        for key in before
        if before[key] != now[key] and key not in free
    ]
    warm = step_settings(old).warmup_epochs
    if old.scale_batch == new.scale_batch > 1 and warm != step_settings(new).warmup_epochs:
        changes.append(f"warm-up: {warm:g} epochs in the checkpoint; set warmup_epochs = {warm:g}")
    return changes


def _free_settings(old: TrainConfig, new: TrainConfig) -> set[str]:
    """Return the settings that can differ."""
    free = set()
    if step_settings(old).warmup_epochs == step_settings(new).warmup_epochs:
        free.add("warmup_epochs")  # scale_batch chooses it if it is 0
        if "cosine" not in (old.schedule, new.schedule):
            free.add("epochs")
    if old.scale_batch == new.scale_batch == 1:
        free.add("scale_rule")
    if old.scale_targets == "auto":  # the old training continues as it began
        free.add("scale_targets")
    return free
