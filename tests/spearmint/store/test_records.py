from __future__ import annotations

import re
from pathlib import Path

from spearmint.layout import Layout
from spearmint.model import Experiment, Kind, Language, Trial, TrialState, Variable
from spearmint.store.records import Records, best_text, trace_line

EXPERIMENT = Experiment(
    path=Path("/x/config.pb"),
    name="x",
    language=Language.PYTHON,
    variables=(
        Variable(name="X", kind=Kind.FLOAT, size=2, low=0, high=1),
        Variable(name="n", kind=Kind.INT, low=0, high=9),
        Variable(name="act", kind=Kind.ENUM, options=("relu", "tanh")),
    ),
)
BEST = Trial(
    id=3,
    state=TrialState.COMPLETE,
    params={"X": (0.25, 0.5), "n": (4,), "act": ("tanh",)},
    value=0.125,
)


def test_best_is_written_as_the_original_wrote_it() -> None:
    assert best_text(EXPERIMENT, BEST) == (
        "Best result: 0.125000\nJob-id: 3\nParameters: \n"
        'name: "X"\ndbl_val: 0.25\ndbl_val: 0.5\n\n'
        'name: "n"\nint_val: 4\n\n'
        'name: "act"\nstr_val: "tanh"\n\n'
    )


def test_a_trace_line_has_the_six_columns_of_the_original() -> None:
    line = trace_line(BEST, candidates=10, pending=2, complete=5)
    assert re.fullmatch(r"\d{10},0\.125000,3,10,2,5\n", line)
    assert re.fullmatch(
        r"\d{10},nan,-1,10,2,0\n", trace_line(None, candidates=10, pending=2, complete=0)
    )


def test_a_torn_line_of_the_trace_stays_alone(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.trace.write_text("1,0.5,1,1,1,1\n17")
    records = Records(layout, EXPERIMENT, grid_size=20)
    records.update(BEST, pending=1, complete=2, broken=3)
    lines = layout.trace.read_text().splitlines()
    assert lines[:2] == ["1,0.5,1,1,1,1", "17"]
    assert lines[2].endswith(",0.125000,3,14,1,2")
    assert layout.best.read_text() == best_text(EXPERIMENT, BEST)


def test_a_directory_that_cannot_be_written_delays_the_records(tmp_path: Path) -> None:
    records = Records(Layout(tmp_path / "absent"), EXPERIMENT, grid_size=20)
    records.update(BEST, pending=1, complete=2, broken=3)
    assert not (tmp_path / "absent").exists()
