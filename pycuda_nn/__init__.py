"""Train fully connected neural networks with CUDA on a GPU, or with numpy on the CPU.

>>> import pycuda_nn as nn
>>> train, valid, test = nn.split(nn.load_data("digits"), seed=0)
>>> result = nn.train(nn.TrainConfig(hidden=(128,), epochs=10), train, valid)
>>> nn.evaluate(result.model, test).error < 0.1
True
"""

from pycuda_nn.config import TrainConfig
from pycuda_nn.cuda.backend import CudaBackend
from pycuda_nn.cuda.options import CudaOptions
from pycuda_nn.data.dataset import Dataset, concat
from pycuda_nn.data.sources import load_data, load_splits
from pycuda_nn.data.split import Splits, split
from pycuda_nn.data.table import Encoding, TableOptions
from pycuda_nn.errors import PycudaNNError, TrainingDiverged
from pycuda_nn.layers.formulas import formula
from pycuda_nn.model import Model, evaluate
from pycuda_nn.network import Network
from pycuda_nn.protocols import Metrics
from pycuda_nn.training.checkpoint import load_model
from pycuda_nn.training.history import EpochReport
from pycuda_nn.training.loop import TrainResult, train
from pycuda_nn.training.many import train_many

__all__ = [
    "CudaBackend",
    "CudaOptions",
    "Dataset",
    "Encoding",
    "EpochReport",
    "Metrics",
    "Model",
    "Network",
    "PycudaNNError",
    "Splits",
    "TableOptions",
    "TrainConfig",
    "TrainResult",
    "TrainingDiverged",
    "concat",
    "evaluate",
    "formula",
    "load_data",
    "load_model",
    "load_splits",
    "split",
    "train",
    "train_many",
]
