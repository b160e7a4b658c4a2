"""Carry jobs and their files to hosts that do not share the experiment's directory, by Redis.

The controller's side is :mod:`.postman`, the host's side is :mod:`.host`. Both repeat what they
know until the other side has seen it, so a Redis that forgets everything only delays them.
"""

from spearmint.drivers.celery.post.post import Post, check_transfer

__all__ = ["Post", "check_transfer"]
