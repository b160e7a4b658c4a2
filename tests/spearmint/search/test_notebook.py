"""A search in the cells of a notebook, with a real IPython kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="needs nbformat")
nbclient = pytest.importorskip("nbclient", reason="needs nbclient")
pytest.importorskip("ipykernel", reason="needs ipykernel")

# Output that arrives later than iopub_timeout, by default 4 s after the end of a cell, is lost.
PATIENT = {"timeout": None, "startup_timeout": 500, "iopub_timeout": 500}
OPEN = """
import spearmint
search = spearmint.Search({"x": (0, 1), "flag": bool}, directory="out", method="RandomChooser")
"""
FUNCTION = """
import math
SCALE = 2

def objective(x, flag):
    print("evaluated")
    return math.sqrt(x) * SCALE + flag
"""
RUN = "search.minimize(objective, trials=3, n_jobs=2)"
SHOW = "search"
FAILS = """
def wrong(x, flag):
    value = x
    raise ValueError("deep")

search.minimize(wrong, trials=5, max_broken=1)
"""


@pytest.mark.filterwarnings("ignore")
def test_functions_of_cells_are_minimized(tmp_path: Path) -> None:
    cells = [OPEN, FUNCTION, RUN, OPEN, RUN, SHOW, FAILS]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(book, allow_errors=True, resources=where, **PATIENT).execute()
    outputs = [cell.outputs for cell in book.cells]
    printed = "".join(each.text for each in outputs[2] if each.output_type == "stream")
    assert printed.count("\n") == 3
    assert "PointTrial(id=" in outputs[2][-1].data["text/plain"]
    assert outputs[3] == []
    assert outputs[5][0].data["text/html"].count("<tr>") == 4
    error = outputs[6][-1]
    assert error.ename == "SearchFailed"
    assert "deep (cell:3)" in error.evalue
    assert (tmp_path / "out" / "output" / "00000001.out").read_text() == "evaluated\n"
