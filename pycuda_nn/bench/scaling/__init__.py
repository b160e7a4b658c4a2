"""Time one training on 1, 2, ... GPUs of this machine, next to NCCL and torch DDP."""

from pycuda_nn.bench.scaling.cases import NETWORKS, QUICK, counts_up_to
from pycuda_nn.bench.scaling.measure import Settings, measure
from pycuda_nn.bench.scaling.report import ScalingReport
from pycuda_nn.bench.scaling.table import scaling_table

__all__ = [
    "NETWORKS",
    "QUICK",
    "ScalingReport",
    "Settings",
    "counts_up_to",
    "measure",
    "scaling_table",
]
