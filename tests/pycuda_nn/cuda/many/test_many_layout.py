"""The pieces of the parameters of one of many networks are those of its state."""

from __future__ import annotations

import numpy as np

import pycuda_nn as nn
from pycuda_nn.cuda.many.layout import ManyLayout


def test_the_pieces_of_a_network_are_its_parameters() -> None:
    network = nn.Network.from_sizes((5, 20, 33, 3))
    layout = ManyLayout(network, 4)
    states = np.random.default_rng(0).normal(size=(4, network.n_params)).astype(np.float32)
    on_device = layout.spread(states)
    for number, state in enumerate(states):
        found = np.full(network.n_params, np.nan, dtype=np.float32)
        for piece in layout.pieces(number):
            rows = piece.place + piece.pitch * np.arange(piece.rows)[:, None]
            values = on_device[rows + np.arange(piece.columns)]
            found[piece.of_state : piece.of_state + values.size] = values.ravel()
        np.testing.assert_array_equal(found, state)
