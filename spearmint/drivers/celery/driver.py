"""The driver for Celery."""

from __future__ import annotations

from typing import ClassVar

from spearmint.drivers.celery.queue import CeleryQueue
from spearmint.drivers.queue import Dialect
from spearmint.drivers.queue_driver import QueueDriver


class CeleryDriver(QueueDriver):
    """Run trials on the workers of ``spearmint worker``, one at a time on each."""

    name = "CELERY"
    queue_type = CeleryQueue
    dialect: ClassVar[Dialect] = Dialect(queue="Celery", accounting="the job's folder")
