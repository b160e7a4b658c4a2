"""Run trials by Celery: :class:`CeleryDriver`, and the workers of ``spearmint worker``."""

from spearmint.drivers.celery.driver import CeleryDriver
from spearmint.drivers.celery.queue import CeleryQueue

__all__ = ["CeleryDriver", "CeleryQueue"]
