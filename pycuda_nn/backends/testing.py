"""The rules of :class:`Session` as tests; subclass :class:`BackendContract` for a new backend.

::

    class TestMine(BackendContract):
        def backend(self) -> Backend:
            return MyBackend()
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.backends.numpy.session import NumpyBackend
from pycuda_nn.layers import loss_of
from pycuda_nn.network import Network
from pycuda_nn.protocols import AdamHyper, Backend, Session, SgdHyper, Split, TrainingRecipe
from pycuda_nn.rng import epoch_order, uniform

Array = npt.NDArray[Any]

ADAM = AdamHyper(beta1=0.9, beta2=0.999, eps=1e-8)
SGD = SgdHyper(momentum=0.9, nesterov=False)
NESTEROV = SgdHyper(momentum=0.9, nesterov=True)
HUBER = "where(abs(z - y) < 0.2, 0.5 * (z - y)**2, 0.2 * abs(z - y) - 0.02)"
FOCAL = "-(0.9 * y + 0.1 / classes) * where(k < 1, 2, 1) * (1 - p)**2 * logp"
_ROWS, _BATCH, _COLUMNS, _CLASSES = 70, 16, 6, 3  # 70 = 4 * 16 + 6: the last step is smaller


def sample_parts(loss: str) -> dict[str, Split]:
    """Return small training and validation rows for ``loss``."""
    x = uniform(_ROWS * _COLUMNS, 1, 0).reshape(_ROWS, _COLUMNS)
    y: Array = x[:, :2] * x[:, 2:4]
    if loss_of(loss).of_classes:
        cuts = [0.0] if loss == "logistic" else [-0.1, 0.1]
        y = np.digitize(x[:, 0] * x[:, 1], cuts).astype(np.int32)
    return {"train": Split(x=x, y=y), "valid": Split(x=x[:30], y=y[:30])}


def sample_network(loss: str, activation: str = "relu", dropout: float = 0.0) -> Network:
    """Return a network with two hidden layers for :func:`sample_parts`."""
    found = loss_of(loss)
    outputs = found.outputs(_CLASSES, 0) if found.of_classes else found.outputs(0, 2)
    sizes = (_COLUMNS, 9, 7, outputs)
    return Network.from_sizes(sizes, activation=activation, loss=loss, dropout=dropout)


def sample_recipe(optimizer: AdamHyper | SgdHyper = SGD, *, l2: float = 0.0) -> TrainingRecipe:
    """Return a recipe with a batch size that does not divide the rows."""
    return TrainingRecipe(optimizer=optimizer, batch_size=_BATCH, l2=l2, seed=3)


class BackendContract(ABC):
    """Tests of one backend; ``rtol`` is the relative tolerance of its losses against float64."""

    rtol = 1e-4

    @abstractmethod
    def backend(self) -> Backend:
        """Return the backend under test."""

    def open(self, loss: str, recipe: TrainingRecipe, **more: Any) -> Session:
        """Return a new session of the backend under test; ``more`` is for the network."""
        return _open(self.backend(), loss, recipe, **more)

    def test_losses_are_those_of_float64(self) -> None:
        """Rules 1 and 2 for each loss, activation and optimizer, with dropout and L2."""
        for loss, activation, optimizer in (
            ("softmax", "relu", SGD),
            ("logistic", "tanh", NESTEROV),
            ("squared", "sigmoid", ADAM),
            ("softmax", "sigmoid", ADAM),
            (HUBER, "gelu", NESTEROV),
            (FOCAL, "x * sigmoid(1.7 * x)", ADAM),
        ):
            recipe = sample_recipe(optimizer, l2=1e-3)
            how = {"activation": activation, "dropout": 0.25}
            exact = _open(NumpyBackend(np.float64), loss, recipe, **how)
            got, want = self.open(loss, recipe, **how), exact
            for epoch in range(3):
                np.testing.assert_allclose(_run(got, epoch), _run(want, epoch), rtol=self.rtol)
            np.testing.assert_allclose(
                got.evaluate("valid").loss, want.evaluate("valid").loss, rtol=self.rtol
            )
            np.testing.assert_allclose(got.params(), want.params(), rtol=1e-2, atol=1e-4)

    def test_same_seed_same_losses(self) -> None:
        """Two sessions agree bit for bit."""
        recipe = sample_recipe(ADAM)
        first, second = (self.open("softmax", recipe, dropout=0.5) for _ in range(2))
        np.testing.assert_array_equal(_run(first, 0), _run(second, 0))
        np.testing.assert_array_equal(first.params(), second.params())

    def test_state_goes_on_exactly(self) -> None:
        """Rule 3: a session that loads a state continues with the same bits."""
        for optimizer in (SGD, NESTEROV, ADAM):
            recipe = sample_recipe(optimizer, l2=1e-3)
            whole, stopped = (self.open("softmax", recipe, dropout=0.5) for _ in range(2))
            _run(whole, 0)
            _run(stopped, 0)
            state = stopped.state()
            _run(stopped, 7)  # must not change the copy
            resumed = self.open("softmax", recipe, dropout=0.5)
            resumed.load_state(state)
            np.testing.assert_array_equal(_run(whole, 1), _run(resumed, 1))
            np.testing.assert_array_equal(whole.params(), resumed.params())

    def test_state_is_plain_numpy(self) -> None:
        """Rule 3: keys, shapes and types are the same for all backends."""
        for optimizer, names in ((SGD, {"velocity"}), (ADAM, {"m", "v"})):
            state = self.open("softmax", sample_recipe(optimizer)).state()
            np.testing.assert_equal(set(state), {"params", "step"} | names)
            for name in {"params"} | names:
                np.testing.assert_equal(state[name].dtype, np.dtype(np.float32))
                np.testing.assert_equal(state[name].shape, (sample_network("softmax").n_params,))
            np.testing.assert_equal(state["step"].dtype, np.dtype(np.int64))

    def test_steps_are_counted(self) -> None:
        """Rule 2: an epoch of 70 rows in batches of 16 has 5 steps."""
        session = self.open("softmax", sample_recipe())
        _run(session, 0)
        _run(session, 1)
        np.testing.assert_equal(int(session.state()["step"]), 10)

    def test_evaluate_changes_nothing(self) -> None:
        """Rule 4: evaluation does not change the state and does not use dropout."""
        session = self.open("softmax", sample_recipe(ADAM), dropout=0.5)
        _run(session, 0)
        before = session.state()
        first, second = session.evaluate("valid"), session.evaluate("valid")
        np.testing.assert_equal(first, second)
        for name, value in session.state().items():
            np.testing.assert_array_equal(value, before[name])

    def test_order_is_obeyed(self) -> None:
        """Rule 1: with a learning rate of 0 the losses are those of the rows, batch by batch."""
        session = self.open("squared", sample_recipe())
        order = epoch_order(_ROWS, 0, 0)
        forward = session.run_epoch(order, np.zeros(5))
        back = session.run_epoch(order[::-1].copy(), np.zeros(5))
        weights = np.array([16, 16, 16, 16, 6])
        np.testing.assert_allclose(forward @ weights, back @ weights, rtol=1e-5)
        np.testing.assert_equal(bool(np.abs(forward - back).max() > 1e-4), True)

    def test_divergence_is_reported_not_raised(self) -> None:
        """A huge learning rate gives losses that are not finite, without an exception."""
        session = self.open("squared", sample_recipe())
        losses = [session.run_epoch(epoch_order(_ROWS, 0, e), np.full(5, 1e30)) for e in range(3)]
        np.testing.assert_equal(bool(np.isfinite(np.concatenate(losses)).all()), False)


def _open(backend: Backend, loss: str, recipe: TrainingRecipe, **more: Any) -> Session:
    network = sample_network(loss, **more)
    return backend.open(network, recipe, sample_parts(loss), network.initial_params(5))


def _run(session: Session, epoch: int) -> npt.NDArray[np.float32]:
    return session.run_epoch(epoch_order(_ROWS, 3, epoch), np.linspace(0.02, 0.01, 5))
