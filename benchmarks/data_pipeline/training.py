"""Steps of one network, and how long the device waits between them."""

import os
import threading
import time
from importlib import import_module

WARM_UP = 3  # batches; also two of each loader process, as all begin at the same time


def network(name, device):
    """Return a network of torchvision or timm by name; a small one if neither is installed."""
    import torch

    for package, make in (("torchvision.models", "get_model"), ("timm", "create_model")):
        try:
            model = getattr(import_module(package), make)(name)
        except (ImportError, ValueError, RuntimeError):
            continue
        return f"{package.split('.')[0]} {name}", model.to(
            device, memory_format=torch.channels_last
        )
    layers = []
    for channels, width in ((3, 32), (32, 64), (64, 128)):
        layers += [torch.nn.Conv2d(channels, width, 3, 2, 1), torch.nn.ReLU()]
    layers += [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(128, 10)]
    model = torch.nn.Sequential(*layers).to(device, memory_format=torch.channels_last)
    return (
        "three convolutions (torchvision and timm are not installed, or have no such model)",
        model,
    )


class Training:
    """Steps of one network, with the time of its work on the device and of the gaps."""

    def __init__(self, model, device):
        import torch

        self.torch, self.device, self.model = torch, device, model
        self.optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
        self.marks = []

    def mark(self):
        """Note the time on the device: an event in its queue, or the clock of the CPU."""
        if self.device.type != "cuda":
            self.marks.append(time.perf_counter())
            return
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        self.marks.append(event)

    def step(self, images, classes):
        """Train with one batch; mark the begin, after its data has arrived, and the end."""
        torch = self.torch
        x = images.to(self.device, non_blocking=True)
        classes = classes.to(self.device, non_blocking=True)
        self.mark()
        x = x.to(memory_format=torch.channels_last).float() / 127.5 - 1.0
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            outputs = self.model(x)
        self.optimizer.zero_grad()
        torch.nn.functional.cross_entropy(outputs.float(), classes).backward()
        self.optimizer.step()
        self.mark()

    def measure(self, batches, seconds, workers):
        """Return images per second, the share of time without data, and the GPU's utilisation."""
        self.marks, images, began, busy = [], 0, None, Busy()
        for count, (x, classes) in enumerate(batches):
            if count == max(WARM_UP, 2 * workers):
                self.synchronize()
                self.marks, images, began = self.marks[-1:], 0, time.perf_counter()
                busy.start()
            self.step(x, classes)
            images += len(x)
            if self.device.type == "cuda" and len(self.marks) > 4:
                self.marks[-5].synchronize()  # two steps are queued: the loop ends on time
            if began is not None and time.perf_counter() - began > seconds:
                break
        self.synchronize()
        elapsed, share = time.perf_counter() - began, busy.stop()
        ends, begins = self.marks[:-1:2], self.marks[1::2]
        waited = sum(self.between(*pair) for pair in zip(ends, begins, strict=True))
        return images / elapsed, waited / self.between(self.marks[0], self.marks[-1]), share

    def between(self, first, second):
        """Return the seconds between two marks."""
        return first.elapsed_time(second) / 1000 if self.device.type == "cuda" else second - first

    def synchronize(self):
        """Wait for the device."""
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()


class Busy(threading.Thread):
    """The utilisation of the GPU by NVML, as trials record it, from start to stop."""

    def __init__(self):
        super().__init__(daemon=True)
        self.meter, self.ends = None, threading.Event()

    def run(self):
        """Sample five times a second."""
        try:
            from spearmint.trial.gpu_use.meter import Meter

            visible = os.environ.get("CUDA_VISIBLE_DEVICES") or "0"
            self.meter = Meter(visible.split(",")[0])
            while not self.ends.wait(0.2):
                self.meter.sample()
        except (ImportError, LookupError):
            return

    def stop(self):
        """Return the mean, 0 to 1; None if it is not known."""
        self.ends.set()
        self.join(5)
        return self.meter.result()["gpu_busy"] if self.meter else None
