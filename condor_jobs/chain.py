"""One chain of a DAG: search, retrain the best, evaluate, publish."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from condor_jobs.errors import InputError
from condor_jobs.text import plain_name
from spearmint.config import load_experiment
from spearmint.errors import SpearmintError

MODEL, BEST, EVALUATION = "dag-model", "dag-best.json", "evaluate.out"
"""Names in the folder of a chain, and in the working directory of its jobs."""
_SPEC = "chain.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """What the nodes of a chain do.

    Attributes:
        name: Name of its folder, in nodes and in the directory of published models.
        directory: Directory of config.pb.
        region: Region of the search; empty without regions.
        options: Options of ``spearmint run``.
        target: Where to publish.
    """

    name: str
    directory: str
    region: str
    options: tuple[str, ...]
    target: str

    def write(self, folder: Path) -> None:
        """Store it for the nodes."""
        (folder / _SPEC).write_text(self.text())

    def text(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def read(cls, folder: Path) -> Chain:
        """Return the chain of a folder."""
        content = json.loads((folder / _SPEC).read_text())
        return cls(**{**content, "options": tuple(content["options"])})


def chains_of(
    directories: Iterable[Path], options: Sequence[str], publish: Path
) -> tuple[Chain, ...]:
    """Return a chain for each directory, or for each region of its config.pb.

    Raises:
        InputError: A config.pb is missing or wrong, or two chains have the same name.
    """
    found: dict[str, Chain] = {}
    for directory in directories:
        for region in _regions_of(directory):
            name = plain_name(f"{directory.name}.{region}" if region else directory.name)
            if name in found:
                raise InputError(
                    f"{directory} and {found[name].directory} would both be {name}",
                    "Rename one of the directories.",
                )
            found[name] = Chain(
                name=name,
                directory=str(directory),
                region=region,
                options=tuple(options),
                target=str(publish / name),
            )
    return tuple(found.values())


def _regions_of(directory: Path) -> Sequence[str]:
    try:
        return load_experiment(directory).regions or ("",)
    except SpearmintError as error:
        raise InputError(error.what, error.fix) from error
