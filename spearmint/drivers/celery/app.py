"""The Celery application of controllers and workers. The only importer of celery and kombu."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spearmint.drivers.celery.broker import Broker
from spearmint.drivers.celery.messages import TASK
from spearmint.errors import DriverError, DriverUnreachable
from starmint import extra_command

LIST = "spearmint_slot"
"""Name of the remote control command that a worker answers with what it runs."""

_CONNECT_S = 5.0
_ANSWER_S = 15.0
_REDELIVER_S = 60  # a worker acknowledges at once, so only the message of a dead one is older


def require_celery() -> None:
    """Raise DriverError if celery is not installed."""
    try:
        import celery  # noqa: F401
    except ImportError:
        raise DriverError(
            "celery is not installed", f"Install it: {extra_command('celery')}"
        ) from None


def make_app(broker: Broker, queue: str) -> Any:
    """Return the application, in which all messages are JSON."""
    require_celery()
    from celery import Celery

    app = Celery("spearmint", broker=broker.url, set_as_current=False, fixups=[])
    app.conf.update(
        accept_content=["json"],
        task_serializer="json",
        event_serializer="json",
        task_default_queue=queue,
        task_ignore_result=True,
        task_acks_late=False,
        task_remote_tracebacks=False,
        worker_prefetch_multiplier=1,
        worker_enable_prefetch_count_reduction=False,
        worker_redirect_stdouts=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_connection_timeout=_CONNECT_S,
        broker_heartbeat=30,
        broker_transport_options=_transport_options(broker),
        broker_use_ssl=broker.tls(),
        control_exchange=f"{queue}.control",
        event_exchange=f"{queue}.events",
    )
    return app


def _transport_options(broker: Broker) -> Mapping[str, Any]:
    if broker.is_redis:
        return {
            "visibility_timeout": _REDELIVER_S,
            "socket_connect_timeout": _CONNECT_S,
            "socket_keepalive": True,
            "health_check_interval": 25,
        }
    return {"confirm_publish": True, "connect_timeout": _CONNECT_S}


class Client:
    """The calls of a controller to the broker. Each opens a connection, so none is ever stale."""

    def __init__(self, broker: Broker, queue: str) -> None:
        self._broker, self._queue = broker, queue
        self._app = make_app(broker, queue)

    def send(self, queue: str, args: Sequence[str], id: str) -> None:
        """Send the message about a job. Raises DriverUnreachable; it may be sent all the same."""
        with self._connection() as connection:
            self._app.send_task(
                TASK,
                args=list(args),
                task_id=id,
                queue=queue,
                connection=connection,
                retry=False,
                ignore_result=True,
            )

    def waiting(self, queue: str) -> int:
        """Return the number of messages in a queue."""
        from kombu.exceptions import ChannelError  # type: ignore[attr-defined,unused-ignore]

        with self._connection() as connection:
            try:
                found = connection.default_channel.queue_declare(queue=queue, passive=True)
            except (ChannelError, *connection.channel_errors):
                return 0  # it does not exist yet
            return int(found.message_count)

    def slots(self, wait_s: float = 1.0) -> list[Mapping[str, Any]]:
        """Return what each connected worker answers within ``wait_s`` seconds."""
        with self._connection() as connection:
            answers = self._app.control.broadcast(
                LIST, reply=True, timeout=wait_s, connection=connection
            )
        found = [slot for answer in answers or () for slot in answer.values()]
        return [slot for slot in found if isinstance(slot, dict) and "host" in slot]

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Any]:
        from kombu.exceptions import OperationalError

        timeouts = (
            {"socket_timeout": _ANSWER_S}
            if self._broker.is_redis
            else {"read_timeout": _ANSWER_S, "write_timeout": _ANSWER_S}
        )
        options = {**_transport_options(self._broker), **timeouts}
        connection = self._app.connection_for_write(
            self._broker.url, heartbeat=0, transport_options=options
        )
        errors = (OperationalError, OSError, *connection.connection_errors)
        try:
            connection.ensure_connection(max_retries=1, timeout=_CONNECT_S)
            yield connection
        except errors as error:
            raise DriverUnreachable(
                f"the broker {self._broker} does not answer: {type(error).__name__}",
                "Start it, or check the URL of the broker.",
            ) from None
        finally:
            with contextlib.suppress(Exception):
                connection.release()
