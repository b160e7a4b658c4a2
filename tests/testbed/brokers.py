"""Real brokers on loopback, with their own ports and directories: Redis and RabbitMQ of Debian."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from tests.leftovers import keep
from tests.waiting import until

PASSWORD = "pa55word-of-the-broker"  # noqa: S105 - of a test


def free_port() -> int:
    """Return a free port below those that the kernel gives to connections."""
    while True:
        port = 10_000 + secrets.randbelow(20_000)
        with contextlib.suppress(OSError), socket.socket() as found:
            found.bind(("127.0.0.1", port))
            return port


class Broker(ABC):
    """A broker in its own directory; all its processes end with :meth:`close`."""

    scheme: ClassVar[str]

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="starmint-broker-"))
        self.port = free_port()
        self._children: list[subprocess.Popen[bytes]] = []

    @property
    @abstractmethod
    def url(self) -> str: ...

    @abstractmethod
    def start(self) -> None: ...

    def spawn(self, *argv: str, **environment: str) -> None:
        with (self.directory / "log").open("ab") as log:
            self._children.append(
                subprocess.Popen(
                    argv,
                    cwd=self.directory,
                    env={**os.environ, **environment},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )
        keep(self._children[-1])  # tests restart the broker of their module

    def kill(self) -> None:
        """Kill the broker as a power failure does."""
        for child in self._children:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        self._children.clear()

    def signal(self, number: int) -> None:
        for child in self._children:
            os.killpg(child.pid, number)

    def answers(self) -> bool:
        if not self._children:
            return False
        if any(child.poll() is not None for child in self._children):
            raise AssertionError((self.directory / "log").read_text()[-3000:])
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)


class Redis(Broker):
    """Redis that stores nothing, so that it forgets all messages when it is killed."""

    scheme = "redis"

    @property
    def url(self) -> str:
        return f"redis://:{PASSWORD}@127.0.0.1:{self.port}/0"

    @property
    def configuration(self) -> str:
        return f"port {self.port}\n"

    def start(self) -> None:
        config = self.directory / "redis.conf"
        config.write_text(
            f"dir {self.directory}\nbind 127.0.0.1\nrequirepass {PASSWORD}\nsave ''\n"
            + self.configuration
        )
        self.spawn("redis-server", str(config))
        until(self.answers)


class RedisWithTls(Redis):
    """Redis that accepts only TLS, with a certificate of its own authority for 127.0.0.1."""

    scheme = "rediss"

    def __init__(self) -> None:
        super().__init__()
        self.ca, self.other_ca = self._authority("ca"), self._authority("other")
        request = ["-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "request.pem"]
        self._openssl("req", *request, "-subj", "/CN=broker")
        (self.directory / "names").write_text("subjectAltName = IP:127.0.0.1\n")
        signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names"]
        self._openssl("x509", "-req", "-in", "request.pem", *signed, "-out", "cert.pem")

    def _authority(self, name: str) -> Path:
        made = ["-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.pem"]
        self._openssl("req", "-x509", *made, "-subj", f"/CN={name}")
        return self.directory / f"{name}.pem"

    def _openssl(self, *argv: str) -> None:
        command = ["openssl", *argv]
        subprocess.run(command, cwd=self.directory, check=True, capture_output=True)

    @property
    def url(self) -> str:
        return super().url.replace("redis://", "rediss://")

    @property
    def configuration(self) -> str:
        return (
            f"port 0\ntls-port {self.port}\ntls-auth-clients no\n"
            "tls-cert-file cert.pem\ntls-key-file key.pem\ntls-ca-cert-file ca.pem\n"
        )


class RabbitMQ(Broker):
    """RabbitMQ that closes the channel of a consumer which holds a message for 2 s."""

    scheme = "amqp"

    def __init__(self) -> None:
        super().__init__()
        self._epmd, self._distribution = free_port(), free_port()
        self._node = f"starmint{secrets.token_hex(4)}@localhost"

    @property
    def url(self) -> str:
        return f"amqp://trials:{PASSWORD}@127.0.0.1:{self.port}//"

    def start(self) -> None:
        here = self.directory
        (here / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\n"
            f"default_user = trials\ndefault_pass = {PASSWORD}\n"
            "consumer_timeout = 2000\nlog.console = true\nlog.file = false\n"
        )
        (here / "advanced.config").write_text("[{rabbit, [{channel_tick_interval, 500}]}].\n")
        (here / "plugins").write_text("[].\n")
        port = str(self._epmd)
        self.spawn("epmd", "-port", port, "-address", "127.0.0.1")
        self.spawn(
            "/usr/lib/rabbitmq/bin/rabbitmq-server",
            HOME=str(here),
            ERL_EPMD_PORT=port,
            ERL_EPMD_ADDRESS="127.0.0.1",
            ERL_CRASH_DUMP_BYTES="0",
            RABBITMQ_NODENAME=self._node,
            RABBITMQ_DIST_PORT=str(self._distribution),
            RABBITMQ_CONFIG_FILE=str(here / "rabbitmq"),
            RABBITMQ_ADVANCED_CONFIG_FILE=str(here / "advanced.config"),
            RABBITMQ_MNESIA_BASE=str(here / "mnesia"),
            RABBITMQ_LOG_BASE=str(here / "logs"),
            RABBITMQ_PID_FILE=str(here / "pid"),
            RABBITMQ_ENABLED_PLUGINS_FILE=str(here / "plugins"),
            # The listeners of the distribution must not be visible to other hosts.
            RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1}",
        )
        until(self.answers, 120)


BROKERS: dict[str, type[Broker]] = {"redis": Redis, "rabbitmq": RabbitMQ}
