"""The models of the regions that a command is about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spearmint.model import Experiment
    from spearmint.models import ModelStore


def model_stores(config: Path, region: str | None) -> tuple[Experiment, list[ModelStore]]:
    """Return the experiment, and the models of one region or of all.

    Raises:
        InputError: The region does not exist.
    """
    from spearmint.config.reader import load_experiment
    from spearmint.config.regions import pick_region
    from spearmint.layout import Layout
    from spearmint.models import ModelStore
    from spearmint.store.session import known_regions

    experiment = known_regions(load_experiment(config))
    names = experiment.regions or (experiment.name,)
    if region is not None:
        names = (pick_region(experiment.regions, region),)
    models = Layout(experiment.directory).models
    return experiment, [ModelStore(models / name) for name in names]
