"""Apply the requests of users while a search runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from spearmint.controller.events import SearchObserver
from spearmint.controller.study_run import StudyRun
from spearmint.requests.applying import apply
from spearmint.requests.inbox import Action, Inbox, Request


@dataclass(slots=True)
class RequestDesk:
    """Applies each request of the inbox once.

    A request to stop trials stays in the inbox until they have ended, so that a controller that is
    killed before does not restart them. A request for a region that this controller does not run
    stays, too.
    """

    studies: Sequence[StudyRun]
    observer: SearchObserver
    inbox: Inbox
    _open: set[str] = field(default_factory=set)  # seen before, and not done

    def has_news(self) -> bool:
        """Return whether a request was not seen before."""
        return not self._open.issuperset(self.inbox.names())

    def handle(self) -> None:
        """Apply all requests.

        Raises:
            DriverUnreachable, StorageError: The next call continues.
        """
        names = self.inbox.names()
        self._open.intersection_update(names)
        for name in names:
            request = self.inbox.read(name)
            if request is None:
                self._reject(name)
                continue
            for study in self.studies:
                if study.experiment.region == request.region:
                    self._apply(study, request)
            self._open.add(name)

    def _apply(self, study: StudyRun, request: Request) -> None:
        if request.action is not Action.STOP:
            if text := apply(study.study, self.inbox, request):
                self.observer.note(text)
            return
        ended = [study.stop(trial_id, request.reason) for trial_id in request.trials]
        if all(ended):
            self.inbox.remove(request.id)

    def _reject(self, name: str) -> None:
        """Set aside a file that is not a request, unless it was applied by now."""
        if name in self.inbox.names():
            self.observer.note(f"ignored an invalid request: {self.inbox.reject(name)}")
