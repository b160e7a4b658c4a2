"""Measure whether a training waits for its data: synthetic images against JPEG files and arrays.

    python -m benchmarks.data_pipeline [--quick] [--model resnet50] [--batch 256] [--json FILE]

Trains a network with one batch that stays on the device (synthetic), with JPEG files that loader
processes decode and augment, and with decoded arrays (uint8, .npy). Per run: images per second, and
the share of time in which the device had nothing to do because data was missing. Needs torch and
Pillow; torchvision or timm for their models, scikit-learn for its photos, nvidia-ml-py for the
utilisation of the GPU. Without a GPU, it measures a small network on the CPU.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.data_pipeline.images import STORED, Decoded, Jpegs, endless, photos
from benchmarks.data_pipeline.training import Training, network

MODEL = {"cuda": "resnet50", "cpu": "resnet18"}
BATCH, SIZE = {"cuda": 256, "cpu": 16}, {"cuda": 224, "cpu": 64}
QUICK_BATCH, QUICK_S, LIMIT_S = 128, 2.0, 40.0
PACKAGES = ("torch", "torchvision", "timm", "numpy", "pillow", "nvidia-ml-py")


def runs(jpegs, decoded, batch, workers, device):
    """Yield the name of the data, the loader processes, and the batches of each run."""
    import torch

    shape = (batch, 3, jpegs.size, jpegs.size)
    fixed = torch.randint(0, 256, shape, dtype=torch.uint8).to(device)
    classes = torch.randint(10, (batch,)).to(device)
    yield "synthetic, on the device", "-", iter(lambda: (fixed, classes), None)
    for name, dataset in (("JPEG: decode, crop, flip", jpegs), ("decoded: crop, flip", decoded)):
        for count in workers:
            yield name, count, endless(dataset, batch, count, device)


def hardware(device):
    """Return the machine and the versions."""
    import torch

    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    known = {}
    for package in PACKAGES:
        try:
            known[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU only",
        "cpu": names[0] if names else platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        **known,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
    }


def table(rows):
    """Return the rows as text, with rates relative to synthetic data."""
    lines = [f"{'data':<26} workers  images/s  of synthetic  device waited  GPU busy (NVML)"]
    for row in rows:
        busy = "-" if row["gpu_busy"] is None else f"{100 * row['gpu_busy']:.0f} %"
        share = f"{100 * row['rate'] / rows[0]['rate']:.0f} %"
        lines.append(
            f"{row['data']:<26} {row['workers']:>7} {row['rate']:>9.0f} {share:>13} "
            f"{100 * row['waited']:>12.0f} % {busy:>16}"
        )
    return "\n".join(lines)


def needed(rows):
    """Return how many loader processes could feed the device, by the rate of a single one."""
    single = [row for row in rows if row["workers"] == 1 and row["waited"] > 0.2]
    return [
        f"{row['data']}: one process gives {row['rate']:.0f} images/s; "
        f"about {rows[0]['rate'] / row['rate']:.0f} cores feed this device"
        for row in single
    ]


def parse(argv):
    """Return the options."""
    parser = argparse.ArgumentParser(
        description="Measure whether a training waits for its data.",
        epilog="Example: python -m benchmarks.data_pipeline --quick --workers 0 1 2 4 8",
    )
    parser.add_argument("--quick", action="store_true", help="2 s a run, and none after 40 s")
    parser.add_argument(
        "--model", help="of torchvision or timm; default: resnet50, on CPU resnet18"
    )
    parser.add_argument(
        "--batch", type=int, help="images in a step; default: 256, quick 128, on a CPU 16"
    )
    parser.add_argument("--size", type=int, help="pixels of a side; default: 224, on a CPU 64")
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2, 4], metavar="N")
    parser.add_argument("--images", type=int, help="JPEG files; default: 2048, quick 256")
    parser.add_argument("--seconds", type=float, help="of each run; default: 10, quick 2")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    return parser.parse_args(argv)


def main(argv=None):
    """Measure, and print a table."""
    options, began = parse(argv), time.perf_counter()
    try:
        import PIL  # noqa: F401
        import torch
    except ImportError as error:
        sys.exit(f"this benchmark needs torch and Pillow: {error}")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    warnings.filterwarnings("ignore", "This DataLoader will create")  # more than cores: measured
    size = options.size or SIZE[device.type]
    batch = options.batch or min(BATCH[device.type], QUICK_BATCH if options.quick else 10**9)
    seconds = options.seconds or (QUICK_S if options.quick else 10.0)
    limit = began + (LIMIT_S if options.quick else float("inf"))
    count = max(options.images or (256 if options.quick else 2048), batch)
    name, model = network(options.model or MODEL[device.type], device)
    about = {**hardware(device), "model": name, "batch": batch, "size": size}
    training, rows = Training(model, device), []
    with tempfile.TemporaryDirectory() as directory:
        origin, files = photos(count)
        for i, content in enumerate(files):
            (Path(directory) / f"{i:06d}.jpg").write_bytes(content)
        jpegs = Jpegs(Path(directory), size)
        decoded = Decoded(Decoded.store(jpegs, size), size)
        about["images"] = f"{count} JPEG files, {STORED[0]} x {STORED[1]}, {origin}"
        about["mean_bytes"] = round(statistics.mean(map(len, files)))
        print("\n".join(f"{key}: {value}" for key, value in about.items()), flush=True)
        for data, workers, batches in runs(jpegs, decoded, batch, options.workers, device):
            if time.perf_counter() > limit:
                print(f"left out after {LIMIT_S:g} s: {data}, {workers} workers")
                continue
            rate, waited, busy = training.measure(
                batches, seconds, 0 if workers == "-" else workers
            )
            row = {"data": data, "workers": workers, "rate": rate, "waited": waited}
            rows.append({**row, "gpu_busy": busy})
            print(table(rows).splitlines()[0 if len(rows) == 1 else -1], flush=True)
            if len(rows) == 1:
                print(table(rows).splitlines()[1], flush=True)
            del batches
    print("\n".join(needed(rows)))
    print(f"{time.perf_counter() - began:.0f} s in all")
    if options.json:
        options.json.write_text(json.dumps({**about, "runs": rows}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
