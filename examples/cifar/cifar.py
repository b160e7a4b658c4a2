"""One trial: train a residual network with images, in one process or in each of several."""

import os
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from spearmint import report
from spearmint.training import scaled_lr

EPOCHS = int(os.environ.get("EPOCHS", "20"))
RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
LOCAL_RANK = int(os.environ.get("LOCAL_RANK", "0"))
ON_GPU = torch.cuda.is_available()
SAFE = torch.__version__ >= "2"  # 1.13 reads no floats in this way; only this trial writes there
DEVICE = torch.device("cuda", LOCAL_RANK) if ON_GPU else torch.device("cpu")


def load():
    """Return images (N, 3, H, W) in uint8 and their classes, for training and validation."""
    if "CIFAR" in os.environ:
        files = sorted(Path(os.environ["CIFAR"]).glob("data_batch_*.bin"))
        rows = np.concatenate([np.fromfile(file, np.uint8).reshape(-1, 3073) for file in files])
        images, classes = rows[:, 1:].reshape(-1, 3, 32, 32), rows[:, 0]
    else:
        from sklearn.datasets import load_digits

        digits = load_digits()
        small = (digits.images * 15).astype(np.uint8)[:, None].repeat(3, axis=1)
        images, classes = small.repeat(2, axis=2).repeat(2, axis=3), digits.target
    order = np.random.default_rng(0).permutation(len(images))
    train, valid = np.split(order, [len(order) * 9 // 10])
    return [
        (torch.tensor(images[rows]), torch.tensor(classes[rows]).long()) for rows in (train, valid)
    ]


class Block(nn.Module):
    """Two convolutions, and a shortcut around them."""

    def __init__(self, width_in, width, stride):
        super().__init__()
        self.first = nn.Conv2d(width_in, width, 3, stride, padding=1, bias=False)
        self.second = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(width), nn.BatchNorm2d(width)])
        self.shortcut = nn.Conv2d(width_in, width, 1, stride, bias=False)

    def forward(self, x):
        """Return the features of the block."""
        inner = functional.relu(self.norms[0](self.first(x)))
        return functional.relu(self.norms[1](self.second(inner)) + self.shortcut(x))


def network(width):
    """Return three stages with 1, 2 and 4 times ``width`` channels."""
    stages = [Block(3, width, 1), Block(width, 2 * width, 2), Block(2 * width, 4 * width, 2)]
    return nn.Sequential(*stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, 10))


def prepared(images, augment=False):
    """Return images as numbers around 0; shift each batch by up to 2 pixels to augment it."""
    x = images.to(DEVICE, memory_format=torch.channels_last).float() / 127.5 - 1.0
    if augment:
        shift = torch.randint(-2, 3, (2,)).tolist()
        x = torch.roll(x, shift, dims=(2, 3))
    return x


def loss_of(model, images, classes, augment=False):
    """Return the outputs and the mean loss, in bfloat16 on a GPU."""
    with torch.autocast(DEVICE.type, torch.bfloat16, enabled=ON_GPU):
        outputs = model(prepared(images, augment))
    return outputs, functional.cross_entropy(outputs.float(), classes.to(DEVICE))


def train_epoch(model, optimizer, data, batch, lr, epoch):
    """Train with this process's part of the images; all processes do equally many steps."""
    model.train()
    images, classes = data
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
    mine = order[: len(order) // WORLD * WORLD][RANK::WORLD].split(batch)
    for i, rows in enumerate(mine):
        if len(rows) < 2:  # too few for batch normalisation
            continue
        for group in optimizer.param_groups:
            step, warmup = epoch * len(mine) + i, 2 * len(mine)
            group["lr"] = scaled_lr(lr, WORLD * batch, 256, warmup, step)
        optimizer.zero_grad()
        loss_of(model, images[rows], classes[rows], augment=True)[1].backward()
        optimizer.step()


@torch.no_grad()
def error_of(model, data):
    """Return the share of wrong images over the parts of all processes."""
    model.eval()
    images, classes = (part[RANK::WORLD] for part in data)
    wrong = sum(
        (loss_of(model, some, true)[0].argmax(dim=1).cpu() != true).sum()
        for some, true in zip(images.split(500), classes.split(500), strict=True)
    )
    total = torch.tensor([float(wrong), float(len(images))], device=DEVICE)
    if WORLD > 1:
        dist.all_reduce(total)
    return (total[0] / total[1]).item()


def main(job_id, params):
    """Return the validation error, which the search minimizes."""
    if "RANK" in os.environ:
        dist.init_process_group("nccl" if ON_GPU else "gloo")
    if ON_GPU:
        torch.cuda.set_device(DEVICE)
    torch.manual_seed(0)
    train, valid = load()
    plain = network(int(params["width"][0])).to(DEVICE, memory_format=torch.channels_last)
    model = DistributedDataParallel(plain) if WORLD > 1 else plain
    lr, decay = float(params["lr"][0]), float(params["decay"][0])
    optimizer = torch.optim.SGD(
        plain.parameters(), lr, momentum=0.9, nesterov=True, weight_decay=decay
    )
    checkpoint = Path(os.environ.get("SPEARMINT_TRIAL_DIR", ".")) / "checkpoint.pt"
    begin, error = 0, 1.0
    if checkpoint.exists():
        begin, error, weights, momenta = torch.load(checkpoint, DEVICE, weights_only=SAFE)
        plain.load_state_dict(weights)
        optimizer.load_state_dict(momenta)
    for epoch in range(begin, EPOCHS):
        train_epoch(model, optimizer, train, int(params["batch"][0]), lr, epoch)
        error = error_of(plain, valid)
        if RANK == 0:
            part = checkpoint.with_suffix(".part")
            torch.save((epoch + 1, error, plain.state_dict(), optimizer.state_dict()), part)
            part.replace(checkpoint)
        report(epoch, error)
    if dist.is_initialized():
        dist.destroy_process_group()
    print(f"validation error {100 * error:.2f} %")
    return error
