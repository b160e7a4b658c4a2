"""Read CSV and Parquet tables with text, dates and missing cells, and encode them as numbers."""

from pycuda_nn.data.table.columns import Column
from pycuda_nn.data.table.encoding import Encoding
from pycuda_nn.data.table.options import TableOptions
from pycuda_nn.data.table.read import SUFFIXES, Table, is_table, read_table
from pycuda_nn.data.table.target import Target, read_target

__all__ = [
    "SUFFIXES",
    "Column",
    "Encoding",
    "Table",
    "TableOptions",
    "Target",
    "is_table",
    "read_table",
    "read_target",
]
