"""The contract of drivers for CELERY, on a real Redis and a real RabbitMQ."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from spearmint.drivers import DriverSettings
from spearmint.drivers.celery import CeleryDriver
from spearmint.drivers.celery.broker import KEY, URL
from spearmint.drivers.testing import DriverContract
from spearmint.resources import Resources
from tests.testbed.brokers import BROKERS
from tests.testbed.celery_workers import Worker

pytestmark = pytest.mark.celery


class _OnABroker(DriverContract):
    broker: ClassVar[str]
    file_transfer: ClassVar[str] = "auto"

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def worker(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
        broker, root = BROKERS[cls.broker](), tmp_path_factory.getbasetemp()
        try:
            broker.start()
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv(URL, broker.url)
                patch.setenv(KEY, "of the contract")
                log = tmp_path_factory.mktemp(cls.broker) / "worker.log"
                with Worker(root, log, "--gpus", "none"):
                    yield
        finally:
            broker.close()

    def make_driver(self, directory: Path) -> CeleryDriver:
        need = Resources(gpus=0, file_transfer=self.file_transfer)
        return CeleryDriver(DriverSettings(directory=directory, polling_s=0.2, resources=need))


class TestRedis(_OnABroker):
    broker = "redis"


class TestRabbitMQ(_OnABroker):
    broker = "rabbitmq"


class TestRedisWithFileTransfer(_OnABroker):
    broker, file_transfer = "redis", "yes"
