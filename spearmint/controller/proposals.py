"""Propose the trials of a study: one at a time, or many from one fit of the model."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from spearmint.controller.signals import ProposalStopped, StopRequest
from spearmint.model import Trial
from spearmint.store.study import Study

# With fewer free places, each proposal fits the model again: it costs more and finds more digits.
_FEWEST = 4
# Maximum number of points from one fit, which do not know the results since then.
_MOST = 50


@dataclass(slots=True)
class Proposals:
    """Points of a study that are proposed when they are asked for, or ahead of need.

    Points ahead of need are only in memory: a killed controller loses nothing but their time.
    """

    study: Study
    stop: StopRequest = field(default_factory=StopRequest)
    _ready: deque[Mapping[str, Any]] = field(default_factory=deque)
    _source: Iterator[Mapping[str, Any]] | None = None
    _left: int = 0  # points that the model of ``_source`` is still used for

    def ask(self, n_free: int) -> Trial:
        """Return a new running trial, a queued point first, for one of ``n_free`` free places."""
        is_batch = self._ready or self._left or n_free >= _FEWEST
        if not is_batch or self.study.has_queued():
            self._source, self._left = None, 0
            return self.study.ask()
        if not self._ready and not self.prepare(n_free):
            return self.study.ask()
        return self.study.add_running(self._ready.popleft())

    def prepare(self, most: int) -> bool:
        """Compute one more point, unless ``most`` are ready; return whether any was computed.

        Raises:
            ProposalStopped: A signal requested a stop.
        """
        if len(self._ready) >= most:
            return False
        if not self._left:
            self._source = self.study.propose(ahead=self._ready)
            self._left = min(most, _MOST)
        if self._source is None:
            self._left = 0
            return False
        self._left -= 1
        try:
            with self.stop.ends_proposal():
                self._ready.append(next(self._source))
        except ProposalStopped:
            self._source, self._left = None, 0
            raise
        return True
