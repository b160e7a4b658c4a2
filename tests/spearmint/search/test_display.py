"""Searches as text, as a table of a notebook, and as a DataFrame."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import spearmint
from spearmint.errors import InputError


@pytest.fixture
def search(tmp_path: Path) -> spearmint.Search:
    space = {"x<b>": (0, 1), "value": ["a&b", 3], "flag": bool}
    found = spearmint.Search(space, directory=tmp_path / "out", method="RandomChooser")
    for value in (0.5, 0.25, None):
        found.tell(found.ask(), value, reason="no <memory>")
    return found


def test_one_line_has_counts_and_the_best_point(search: spearmint.Search) -> None:
    text = repr(search)
    best = search.best
    assert "2 complete" in text
    assert "1 broken" in text
    assert f"best 0.25 (trial {best.id})" in text
    assert f"value={best.params['value']}" in text
    search.close()
    assert repr(search) == text


def test_a_new_search_has_no_best_point(tmp_path: Path) -> None:
    with spearmint.Search({"x": (0, 1)}, directory=tmp_path) as search:
        assert "no trials" in repr(search)
        assert "no trials" in search._repr_html_()
        assert search.best is None
        assert search.trials == []
        assert list(search.dataframe().columns)[:2] == ["state", "value"]


def test_a_notebook_shows_a_table_of_escaped_text(search: spearmint.Search) -> None:
    html = search._repr_html_()
    assert html.count("<tr>") == 3
    assert "x&lt;b&gt;" in html
    assert "no &lt;memory&gt;" in html
    assert "<memory>" not in html


def test_a_dataframe_has_a_column_for_each_variable(search: spearmint.Search) -> None:
    frame = search.dataframe()
    assert list(frame.index) == [1, 2, 3]
    assert list(frame.columns) == [
        "state", "value", "seconds", "reason", "x<b>", "params_value", "flag",
    ]  # fmt: skip
    assert frame["flag"].dtype == bool
    assert frame["value"].min() == 0.25
    assert frame.loc[3, "state"] == "broken"


def test_vectors_of_a_config_have_a_column_for_each_element(tmp_path: Path) -> None:
    config = tmp_path / "config.pb"
    config.write_text(
        'language: PYTHON\nname: "m"\nvariable { name: "X" size: 2 type: FLOAT min: 0 max: 1 }\n'
    )
    with spearmint.Search(config, method="RandomChooser") as search:
        search.tell(search.ask(), 1.0)
        assert list(search.dataframe().columns)[-2:] == ["X[0]", "X[1]"]
        assert "X=" in repr(search)


def test_a_missing_pandas_is_named_with_the_command(
    search: spearmint.Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match=r"install pandas"):
        search.dataframe()


def test_a_trial_is_json_with_the_values_of_the_space(search: spearmint.Search) -> None:
    data = json.loads(json.dumps(search.trials[0].to_json()))
    assert data["params"] == search.trials[0].params
    assert data["id"] == 1


def test_columns_of_a_dataframe_are_unique(tmp_path: Path) -> None:
    space = {"value": (0, 1), "params_value": (2, 3), "trial": (4, 5)}
    with spearmint.Search(space, directory=tmp_path, method="RandomChooser") as search:
        search.tell(search.ask(), 9.0)
        row = search.dataframe().loc[1]
        params = search.trials[0].params
    assert row["value"] == 9.0
    assert row["params_value"] == params["params_value"]
    assert row["params_params_value"] == params["value"]
    assert row["params_trial"] == params["trial"]


def test_a_dataframe_has_columns_for_rungs(tmp_path: Path) -> None:
    space = {"steps_done": (0, 1)}
    rungs = {"min": 1, "max": 4, "reduction_factor": 2}
    with spearmint.Search(
        space, directory=tmp_path, method="RandomChooser", fidelity=rungs
    ) as search:
        trial = search.ask()
        search.tell(trial, 7.0)
        row = search.dataframe().loc[1]
    assert (row["value_at_1"], row["value_at_4"], row["state"]) == (7.0, None, "paused")
    assert "seconds_at_1" in row
    assert (row["steps_done"], row["params_steps_done"]) == (1, trial.params["steps_done"])
