"""Generations of GPUs: what AWS does not report; no I/O."""

from __future__ import annotations

import re

# Names as EC2 reports them in GpuInfo. https://docs.aws.amazon.com/ec2/latest/instancetypes/ac.html
_GENERATIONS = {
    "Kepler": ("GRID K520", "K520", "K80"),
    "Maxwell": ("M60",),
    "Pascal": ("P100",),
    "Volta": ("V100",),
    "Turing": ("T4", "T4G"),
    "Ampere": ("A10G", "A100"),
    "Ada": ("L4", "L40S"),
    "Hopper": ("H100", "H200"),
    "Blackwell": ("B200", "B300", "GB200", "GB300", "RTX PRO 4500", "RTX PRO SERVER 6000"),
}
_OF_GPU = {gpu: generation for generation, gpus in _GENERATIONS.items() for gpu in gpus}
_MAKERS = re.compile(r"^(NVIDIA|TESLA)\s+", re.IGNORECASE)


def short_name(gpu: str) -> str:
    """Return the name of a GPU without its maker: ``H100`` of ``NVIDIA H100``."""
    return _MAKERS.sub("", _MAKERS.sub("", gpu.strip()))


def generation_of(gpu: str) -> str:
    """Return the generation of an NVIDIA GPU, such as ``Hopper``; empty if it is unknown."""
    return _OF_GPU.get(short_name(gpu).upper(), "")
