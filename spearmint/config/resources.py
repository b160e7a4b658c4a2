"""The resources block of a config.pb."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from spearmint.config import experiment_pb2 as pb
from spearmint.errors import ConfigError
from spearmint.formatting import parse_duration
from spearmint.resources import Resources, split_variable


class MakeError(Protocol):
    """Returns an error at a place of the file."""

    def __call__(self, what: str, fix: str, *at: str | int) -> ConfigError:
        """Return it; ``at`` is the path of the field."""


def read_resources(
    message: pb.Experiment.Resources, directory: Path, error: MakeError
) -> Resources:
    """Return the block as a value; a relative venv lies in ``directory``.

    Raises:
        ConfigError: A walltime or a variable that makes no sense.
    """
    walltime_s = None
    if message.walltime:
        try:
            walltime_s = parse_duration(message.walltime)
        except ValueError as problem:
            what = f"walltime: {problem}"
            raise error(what, 'Expected: walltime: "2h"', "resources", 0, "walltime", 0) from None
    if message.slots < 1:
        raise error("slots is 0", "Expected at least 1.", "resources", 0, "slots", 0)
    environment = []
    for i, text in enumerate(message.env):
        try:
            environment.append(split_variable(text))
        except ValueError as problem:
            raise error(str(problem), "", "resources", 0, "env", i) from None
    return Resources(
        gpus=message.gpus,
        slots=message.slots,
        parallel_environment=message.parallel_environment,
        walltime_s=walltime_s,
        memory=message.memory,
        queue=message.queue,
        project=message.project,
        requests=tuple(message.request),
        options=tuple(message.option),
        environment=tuple(environment),
        modules=tuple(message.module),
        venv=directory / Path(message.venv).expanduser() if message.venv else None,
        setup=tuple(message.setup),
    )
