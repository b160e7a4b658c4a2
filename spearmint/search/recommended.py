"""The trial to use of a search in Python, as ``spearmint best`` recommends it."""

from __future__ import annotations

from dataclasses import replace

from spearmint.model import Trial
from spearmint.search.opening import OpenSearch
from spearmint.store.recommending import Recommendation


class Recommends:
    """The property of a search that recommends a trial."""

    _opened: OpenSearch

    def _shown(self, trial: Trial) -> Trial:
        raise NotImplementedError

    @property
    def recommended(self) -> Recommendation | None:
        """The trial to use; None before the first complete one, and with several objectives.

        If the values are noisy, it is the trial with the best expected value, which is often not
        ``best``, the luckiest one. To find it fits a model, which takes up to a few seconds.
        """
        with self._opened.busy:
            found = self._opened.session.study.recommended()
        if found is None:
            return None
        return replace(found, trial=self._shown(found.trial), luckiest=self._shown(found.luckiest))
