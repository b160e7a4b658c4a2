"""A fake ``pynvml``, whose GPUs are named by their bus."""

from __future__ import annotations


class FakeNvml:
    """GPUs in ``lost`` have fallen off the bus; those in ``closed`` must not be asked.

    Attributes:
        asked: Buses, in order.
        ended: Whether NVML was shut down.
    """

    NVML_ERROR_NO_PERMISSION, NVML_ERROR_GPU_IS_LOST, NVML_TEMPERATURE_GPU = 4, 15, 0

    class NVMLError(Exception):
        def __init__(self, value: int) -> None:
            super().__init__(value)
            self.value = value

    def __init__(self) -> None:
        self.lost: set[str] = set()
        self.closed: set[str] = set()
        self.asked: list[str] = []
        self.ended = False

    def nvmlDeviceGetHandleByPciBusId(self, bus: str) -> str:  # noqa: N802
        return bus

    def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:  # noqa: N802
        assert not self.ended
        assert sensor == self.NVML_TEMPERATURE_GPU
        self.asked.append(handle)
        if handle in self.closed:
            raise self.NVMLError(self.NVML_ERROR_NO_PERMISSION)
        if handle in self.lost:
            raise self.NVMLError(self.NVML_ERROR_GPU_IS_LOST)
        return 40

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.ended = True
