"""Which ranks of a trial run on this host, and how they meet those of other hosts."""

from __future__ import annotations

import json
import os
from collections.abc import MutableMapping
from dataclasses import asdict, dataclass

from spearmint.layout import TrialFolder
from spearmint.trial.environment import PLACE


@dataclass(frozen=True, slots=True)
class Place:
    """The part of a trial that runs on one host.

    Attributes:
        records: Folder of the files by which the ranks of this host tell how they ended.
        processes: Number of ranks on each host.
        node: Number of this host among those of the trial; the first one has rank 0.
        nodes: Number of these hosts.
        port: Port of 127.0.0.1 that leads to the ranks of the first host; 0 on that one.
    """

    records: str
    processes: int
    node: int = 0
    nodes: int = 1
    port: int = 0

    @classmethod
    def here(cls, folder: TrialFolder, processes: int) -> Place:
        """Return the place in the environment; without it, the trial is on this host only."""
        text = os.environ.get(PLACE)
        if text:
            return cls(**json.loads(text))
        return cls(str(folder.path / "ranks"), processes)

    @property
    def ranks(self) -> range:
        """The ranks of this host."""
        return range(self.node * self.processes, (self.node + 1) * self.processes)

    @property
    def leads(self) -> bool:
        """Whether this is the first of several hosts."""
        return self.nodes > 1 and self.node == 0

    def variables(self) -> dict[str, str]:
        """Return the environment by which processes find this place."""
        return {PLACE: json.dumps(asdict(self))}

    def join(self, environment: MutableMapping[str, str]) -> int:
        """Turn the variables of a rank of this host into those of all hosts; return the rank."""
        rank = self.ranks[int(environment["RANK"])]
        environment.pop(PLACE, None)
        if self.nodes > 1:
            total = self.nodes * self.processes
            numbers = {"RANK": rank, "WORLD_SIZE": total, "GROUP_RANK": self.node}
            others = {"ROLE_RANK": rank, "ROLE_WORLD_SIZE": total, "GROUP_WORLD_SIZE": self.nodes}
            environment.update({name: str(number) for name, number in (numbers | others).items()})
        if self.port:
            environment.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(self.port))
        return rank
