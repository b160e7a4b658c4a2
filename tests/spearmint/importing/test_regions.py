"""Import of results into regions."""

from __future__ import annotations

from pathlib import Path

from spearmint import Search
from tests.spearmint.conftest import ExperimentDir, MakeExperiment
from tests.spearmint.importing.conftest import CODE, CONFIG, Import, counts, exported

REGIONS = 'region: "us"\nregion: "de"\n'
ROWS = "region,X[0],X[1],n,act,value\nus,0.1,0.2,3,relu,1.5\nde,0.3,0.4,5,tanh,0.5\n"


def with_regions(make: MakeExperiment, root: Path) -> ExperimentDir:
    return make(CODE, CONFIG + REGIONS, root)


def test_only_the_rows_of_the_region_are_taken(
    make_experiment: MakeExperiment, tmp_path: Path, imported: Import, refused: Import
) -> None:
    experiment = with_regions(make_experiment, tmp_path / "a")
    rows = tmp_path / "rows.csv"
    rows.write_text(ROWS)
    assert "us, de" in refused(experiment, rows)
    assert counts(imported(experiment, rows, "--region=de")) == ["1 trials"]
    assert [(trial["region"], trial["value"]) for trial in exported(experiment)] == [("de", 0.5)]


def test_another_search_gives_the_same_region(
    make_experiment: MakeExperiment, tmp_path: Path, imported: Import
) -> None:
    first = with_regions(make_experiment, tmp_path / "a")
    for region, value in (("us", 1.0), ("de", 2.0)):
        with Search(first.config, region=region, method="RandomChooser") as search:
            search.tell(search.ask(), value)
    second = with_regions(make_experiment, tmp_path / "b")
    imported(second, first.root, "--region=de")
    assert [(trial["region"], trial["value"]) for trial in exported(second)] == [("de", 2.0)]


def test_a_region_of_a_file_and_one_that_was_never_run(
    make_experiment: MakeExperiment, tmp_path: Path, imported: Import
) -> None:
    experiment = make_experiment(CODE, CONFIG + 'region: "us"\n', tmp_path / "a")
    names = tmp_path / "regions.txt"
    names.write_text("fr\n")
    assert experiment.run(f"--regions={names}", "--max-finished-jobs=1").returncode == 0
    rows = tmp_path / "rows.csv"
    rows.write_text(ROWS)
    assert counts(imported(experiment, rows, "--region=us", "--dry-run")) == ["1 trials"]
    assert counts(imported(experiment, rows, "--region=fr")) == ["0 trials"]
