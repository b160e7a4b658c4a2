from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import threadpoolctl

from spearmint.gp.numerics import one_blas_thread


def blas_threads() -> list[int]:
    return [i["num_threads"] for i in threadpoolctl.threadpool_info() if i["user_api"] == "blas"]


def test_one_thread_inside_and_as_before_outside() -> None:
    scipy.linalg.cholesky(np.eye(2))
    before = blas_threads()
    with one_blas_thread(), one_blas_thread():
        assert set(blas_threads()) == {1}
    assert blas_threads() == before
    with pytest.raises(RuntimeError), one_blas_thread():
        raise RuntimeError
    assert blas_threads() == before
