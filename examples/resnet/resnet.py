"""One trial: fine-tune a ResNet with images, in one process or in each of several."""

import math
import os
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from images import Images, load
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import DataLoader, DistributedSampler
from torchvision import models

from spearmint import report
from spearmint.training import scaled_lr

try:
    from torch.optim.swa_utils import get_ema_multi_avg_fn

    EMA = {"multi_avg_fn": get_ema_multi_avg_fn(0.85)}
except ImportError:  # PyTorch 1.13
    EMA = {"avg_fn": lambda old, new, count: torch.lerp(old, new, 0.15)}
ARCH, EPOCHS = os.environ.get("ARCH", "resnet50"), int(os.environ.get("EPOCHS", "10"))
SIZE, WORKERS = int(os.environ.get("SIZE", "224")), int(os.environ.get("WORKERS", "4"))
RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
ON_GPU = torch.cuda.is_available()
SAFE = torch.__version__ >= "2"  # 1.13 reads no floats in this way; only this trial writes there
DEVICE = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if ON_GPU else "cpu"
STAGES = ("fc", "layer4", "layer3", "layer2", "layer1", "bn1", "conv1")
TYPE = torch.bfloat16 if ON_GPU else torch.float32
# Pixels from 0 to 255, times SCALE and plus SHIFT, have the mean and deviation of ImageNet.
SCALE, SHIFT = (
    torch.tensor(numbers, dtype=TYPE, device=DEVICE).view(3, 1, 1)
    for numbers in ((0.01712, 0.01751, 0.01743), (-2.1179, -2.0357, -1.8044))
)


def network(classes, lr, trained, group, decay):
    """Return a network and its optimizer; each stage has ``group`` times the rate of the next one.

    With weights, the head and the last ``trained`` stages learn; without, all do.
    """
    model = models.get_model(ARCH, num_classes=classes)
    if "WEIGHTS" in os.environ:
        state = torch.load(os.environ["WEIGHTS"], "cpu", weights_only=True)
        body = {name: value for name, value in state.items() if not name.startswith("fc.")}
        lacks = set(model.load_state_dict(body, strict=False).missing_keys)
        if lacks - {"fc.weight", "fc.bias"}:
            raise ValueError(f"{os.environ['WEIGHTS']} is not a {ARCH}: it has no {min(lacks)}")
        for name in STAGES[trained + 1 :]:
            model.get_submodule(name).requires_grad_(False)
    model.to(DEVICE, memory_format=torch.channels_last)
    parts = [list(model.get_submodule(name).parameters()) for name in STAGES]
    groups = [{"params": part, "scale": group ** min(depth, 5)} for depth, part in enumerate(parts)]
    return model, torch.optim.SGD(groups, lr, 0.9, nesterov=True, weight_decay=decay)


def outputs_of(model, images):
    """Return the outputs for images of 0 to 255, computed in bfloat16 on a GPU."""
    with torch.autocast("cuda" if ON_GPU else "cpu", torch.bfloat16, enabled=ON_GPU):
        return model(torch.addcmul(SHIFT, images, SCALE)).float()


def on_device(images):
    """Return images on the device as numbers of 0 to 255, with their channels last."""
    images = images.to(DEVICE, non_blocking=True)
    return images.contiguous(memory_format=torch.channels_last).to(TYPE)


def train_epoch(model, ema, optimizer, loader, lr, mixup, epoch):
    """Train with this process's part of the images, mixed in pairs."""
    rng, steps = np.random.default_rng((epoch, RANK)), EPOCHS * len(loader)
    plain = model.module if WORLD > 1 else model
    for stage in plain.children():  # norms of frozen stages keep their statistics
        stage.train(any(weight.requires_grad for weight in stage.parameters()))
    for step, (images, classes) in enumerate(loader, epoch * len(loader)):
        images, classes = on_device(images), classes.to(DEVICE, non_blocking=True)
        rate = scaled_lr(lr, WORLD * len(images), 256, warmup_steps=steps // 10, step=step)
        for part in optimizer.param_groups:
            part["lr"] = rate * part["scale"] * (1 + math.cos(math.pi * step / steps)) / 2
        share, order = float(rng.beta(mixup, mixup)), torch.randperm(len(images), device=DEVICE)
        outputs = outputs_of(model, torch.lerp(images[order], images, share))
        optimizer.zero_grad()
        losses = cross_entropy(outputs, classes), cross_entropy(outputs, classes[order])
        (share * losses[0] + (1 - share) * losses[1]).backward()
        optimizer.step()
        if step % 8 == 7 or step == steps - 1:
            ema.update_parameters(plain)


@torch.no_grad()
def error_of(model, loader):
    """Return the share of wrong images over the parts of all processes."""
    model.eval()
    total = torch.zeros(2, device=DEVICE)
    for images, classes in loader:
        wrong = outputs_of(model, on_device(images)).argmax(dim=1) != classes.to(DEVICE)
        total += torch.stack([wrong.sum(), torch.ones_like(wrong).sum()])
    if WORLD > 1:
        dist.all_reduce(total)
    return (total[0] / total[1]).item()


def main(job_id, params):
    """Return the validation error of the averaged weights, which the search minimizes."""
    if "RANK" in os.environ:
        dist.init_process_group("nccl" if ON_GPU else "gloo")
    if ON_GPU:
        torch.cuda.set_device(DEVICE)
        torch.backends.cudnn.benchmark = True  # finds the fastest convolutions for the batch
    torch.manual_seed(0)
    rows = load(os.environ.get("IMAGES"))
    valid, train = rows[: len(rows) // 10], rows[len(rows) // 10 :]
    lr, group, decay, mixup = (float(params[name][0]) for name in ("lr", "group", "decay", "mixup"))
    classes, trained = 1 + max(row[3] for row in rows), int(params["trained"][0])
    plain, optimizer = network(classes, lr, trained, group, decay)
    ema = AveragedModel(plain, **EMA)
    model = DistributedDataParallel(plain, gradient_as_bucket_view=True) if WORLD > 1 else plain
    options = {"num_workers": WORKERS, "pin_memory": ON_GPU, "persistent_workers": WORKERS > 0}
    sampler, batch = DistributedSampler(train, WORLD, RANK), int(params["batch"][0])
    loader = DataLoader(
        Images(train, SIZE, augmented=True),
        min(batch, len(sampler)),
        sampler=sampler,
        drop_last=True,
        **options,
    )
    checks = DataLoader(Images(valid[RANK::WORLD], SIZE), 256, **options)
    checkpoint = Path(os.environ.get("SPEARMINT_TRIAL_DIR", ".")) / "checkpoint.pt"
    begin, error = 0, 1.0
    if checkpoint.exists():
        begin, error, *states = torch.load(checkpoint, DEVICE, weights_only=SAFE)
        for part, state in zip((plain, ema, optimizer), states, strict=True):
            part.load_state_dict(state)
    for epoch in range(begin, EPOCHS):
        sampler.set_epoch(epoch)
        train_epoch(model, ema, optimizer, loader, lr, mixup, epoch)
        error = error_of(ema.module, checks)
        if RANK == 0:
            states = [part.state_dict() for part in (plain, ema, optimizer)]
            torch.save((epoch + 1, error, *states), checkpoint.with_suffix(".part"))
            checkpoint.with_suffix(".part").replace(checkpoint)
        report(epoch, error)
    if dist.is_initialized():
        dist.destroy_process_group()
    return error
