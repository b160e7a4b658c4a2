"""Tools to test a driver: the rules of a driver as tests, and a fake queue that can fail.

Subclass :class:`DriverContract` in a test file, and pytest checks every rule of
:class:`~spearmint.drivers.base.Driver`. This example tests a driver for a custom queue::

    from pathlib import Path

    from spearmint.drivers import Dialect, DriverSettings, QueueDriver
    from spearmint.drivers.testing import DriverContract, FakeQueue


    class MyDriver(QueueDriver):
        name = "mine"
        queue_type = FakeQueue  # yours: a subclass of spearmint.drivers.Queue
        dialect = Dialect(queue="my queue")


    class TestMyDriver(DriverContract):
        def make_driver(self, directory: Path) -> MyDriver:
            return MyDriver(DriverSettings(directory=directory, polling_s=0.1))

``spearmint --driver=my_package.my_module:MyDriver config.pb`` then uses the driver. Needs pytest.
"""

from spearmint.drivers.testing.contract import DriverContract, QueueContract
from spearmint.drivers.testing.fake_queue import FakeQueue

__all__ = ["DriverContract", "FakeQueue", "QueueContract"]
