"""Read, check, split and scale data."""

from pycuda_nn.data.dataset import Dataset, concat
from pycuda_nn.data.scaling import Scaler
from pycuda_nn.data.sources import load_data, load_features, load_splits
from pycuda_nn.data.split import Splits, split

__all__ = [
    "Dataset",
    "Scaler",
    "Splits",
    "concat",
    "load_data",
    "load_features",
    "load_splits",
    "split",
]
