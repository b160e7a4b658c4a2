"""Earlier searches are read as they are: running, killed, broken; and never written."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from spearmint.errors import InputError
from spearmint.store.earlier import earlier_searches, sources
from spearmint.store.sql.sqlite import sqlite_url
from tests.spearmint.store.earlier import contents, made, read


def test_a_finished_search_is_read_and_stays_as_it_was(folder: Path) -> None:
    before = contents(folder)
    (search,) = read(folder)
    assert [t.value for t in search.trials] == [0, 1, 2, 3, 4, 5]
    assert search.trials[3].params == {"X[0]": 0.3, "X[1]": 0.5, "act": "tanh"}
    assert (search.name, search.maximize, search.n_complete) == (str(folder), False, 6)
    assert read(folder / "config.pb")[0].trials == search.trials
    assert contents(folder) == before


def test_a_running_search_is_read_as_it_is_stored(running: Path) -> None:
    names = {p.name for p in running.iterdir()}
    assert "spearmint.db-wal" in names
    (search,) = read(running)
    assert [t.value for t in search.trials] == [1, 2, 3, 4, 5, 6]
    assert {p.name for p in running.iterdir()} == names


def test_a_killed_search_is_read_with_its_log_and_stays_as_it_was(
    running: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "killed"
    copy.mkdir()
    for name in ("spearmint.db", "spearmint.db-wal"):  # no -shm: the host was rebooted
        shutil.copy(running / name, copy / name)
    before = contents(copy)
    (search,) = read(copy)
    assert [t.value for t in search.trials] == [1, 2, 3, 4, 5, 6]
    assert contents(copy) == before


def with_log(path: Path) -> None:
    """Give the file of a database that nobody uses a write-ahead log, which is then empty."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")


def test_a_database_that_nobody_uses_gets_no_log(tmp_path: Path) -> None:
    made(tmp_path / "o.db", "one")
    with_log(tmp_path / "o.db")
    before = contents(tmp_path)
    assert list(before) == [".", "o.db"]
    assert len(read(tmp_path / "o.db")[0].trials) == 1
    assert contents(tmp_path) == before


def test_categories_of_other_programs_are_texts(tmp_path: Path) -> None:
    (search,) = read(made(tmp_path / "o.db", "one"))
    assert search.trials[0].params == {"x": 0.25, "act": "3"}
    assert read(tmp_path / "o.db")[0].trials == search.trials


def test_one_study_of_several_is_named(tmp_path: Path) -> None:
    url = made(tmp_path / "o.db", "one", "two")
    with pytest.raises(InputError, match="one, two"):
        read(url)
    assert len(read(f"{url}#two", f"{tmp_path / 'o.db'}#one")) == 2
    with pytest.raises(InputError, match="'three'"):
        read(f"{url}#three")


def test_the_regions_of_a_search_are_searches_with_their_names(tmp_path: Path) -> None:
    made(tmp_path / "spearmint.db", "mine@us", "mine@d\x1b[2Je")
    assert [s.name for s in read(tmp_path)] == [f"{tmp_path} (us)", f"{tmp_path} (d?[2Je)"]


@pytest.mark.parametrize("rubbish", [b"", b"SQLite format 3\0" + b"x" * 5000, b"hello"])
def test_a_broken_database_is_an_error_that_names_it(tmp_path: Path, rubbish: bytes) -> None:
    (tmp_path / "spearmint.db").write_bytes(rubbish)
    with pytest.raises(InputError, match=str(tmp_path)) as error:
        read(tmp_path)
    assert error.value.exit_code == 2
    assert list(tmp_path.iterdir()) == [tmp_path / "spearmint.db"]


def test_contents_that_are_not_numbers_are_ignored(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "spearmint.db")) as connection:
        connection.execute("UPDATE trial_values SET value = 'many' WHERE trial_id = 1")
        connection.execute("UPDATE trial_values SET value = 9e999 WHERE trial_id = 2")
        connection.execute("UPDATE trial_params SET param_value = 77 WHERE param_name = 'act'")
        connection.commit()
    (search,) = read(folder)
    assert [t.value for t in search.trials] == [2, 3, 4, 5]
    assert "act" not in search.trials[0].params


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "os"}',
        "5",
        "[]",
        '{"name": "FloatDistribution", "attributes": {"bogus": 1}}',
        '{"name": "CategoricalDistribution", "attributes": {"choices": 5}}',
        "[" * 100_000,
    ],
    ids=["class", "number", "list", "argument", "choices", "deep"],
)
def test_a_distribution_that_cannot_be_read_is_an_error(folder: Path, text: str) -> None:
    with closing(sqlite3.connect(folder / "spearmint.db")) as connection:
        connection.execute("UPDATE trial_params SET distribution_json = ?", (text,))
        connection.commit()
    with pytest.raises(InputError, match="cannot learn from"):
        read(folder)


def test_other_contents_that_cannot_be_read_are_errors(folder: Path) -> None:
    (folder / ".spearmint").mkdir()
    known = folder / ".spearmint" / "experiment.json"
    known.write_text("[" * 100_000)
    with pytest.raises(InputError, match="cannot learn from"):
        read(folder)
    known.unlink()
    with closing(sqlite3.connect(folder / "spearmint.db")) as connection:
        connection.execute("UPDATE study_directions SET direction = 'SIDEWAYS'")
        connection.commit()
    with pytest.raises(InputError, match="cannot learn from"):
        read(folder)


@pytest.mark.parametrize("name", ["~no-such-user/digits", "a" * 300 + "#us"], ids=["home", "long"])
def test_a_name_that_cannot_be_a_path_is_an_error(name: str) -> None:
    with pytest.raises(InputError, match="cannot learn from"):
        read(name)


def test_names_of_others_have_no_control_characters_in_messages(tmp_path: Path) -> None:
    url = made(tmp_path / "o.db", "one\x1b]0;title\x07", "two")
    for name in (url, f"{url}#three"):
        with pytest.raises(InputError) as error:
            read(name)
        assert "one?]0;title?, two" in str(error.value)


def test_several_objectives_no_search_and_the_search_itself_are_errors(
    tmp_path: Path, folder: Path
) -> None:
    url = made(tmp_path / "o.db", "two", directions=("minimize", "maximize"))
    with pytest.raises(InputError, match="2 objectives"):
        read(url)
    for name in (tmp_path, tmp_path / "missing", "sqlite:////missing.db", "nothing://x"):
        with pytest.raises(InputError, match="cannot learn from"):
            read(name)
    own = folder / "spearmint.db"
    for itself in (str(folder), str(own), sqlite_url(own)):
        with pytest.raises(InputError, match="this search itself"):
            earlier_searches([itself], folder)


def test_a_fifo_is_not_opened(tmp_path: Path, folder: Path) -> None:
    """Opening one would wait for another process."""
    os.mkfifo(tmp_path / "spearmint.db")
    with pytest.raises(InputError):
        read(tmp_path)
    (folder / ".spearmint").mkdir()
    os.mkfifo(folder / ".spearmint" / "experiment.json")
    assert len(read(folder)[0].trials) == 6
    made(tmp_path / "o.db", "one")
    with_log(tmp_path / "o.db")
    os.mkfifo(tmp_path / "o.db-wal")
    with pytest.raises(InputError, match="not a file"):
        read(tmp_path / "o.db")
    made(tmp_path / "j.db", "one")
    os.mkfifo(tmp_path / "j.db-journal")
    with pytest.raises(InputError, match="not a file"):
        read(tmp_path / "j.db")


def test_of_many_trials_the_best_and_some_others_are_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spearmint.store.earlier.trials._MOST_TRIALS", 3)
    (search,) = read(folder)
    assert len(search.trials) == 3
    assert search.n_complete == 6
    assert min(t.value for t in search.trials) == 0


def test_infeasible_trials_are_marked(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "spearmint.db")) as connection:
        for trial, gap in ((1, 0.5), (2, -0.5)):
            connection.execute(
                "INSERT INTO trial_system_attributes (trial_id, key, value_json) VALUES (?, ?, ?)",
                (trial, "constraints:memory", json.dumps(gap)),
            )
        connection.commit()
    (search,) = read(folder)
    assert [t.is_feasible for t in search.trials] == [False, *[True] * 5]


def _owned(folder: Path, storage: str, mode: int) -> None:
    (folder / ".spearmint").mkdir()
    path = folder / ".spearmint" / "experiment.json"
    known = {"name": "one", "token": "t", "root": str(folder), "host": "h", "storage": storage}
    path.write_text(json.dumps(known))
    path.chmod(mode)


def test_a_storage_that_another_user_could_have_written_is_not_connected_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    url = made(tmp_path / "o.db", "one", "one@us", "other")
    for folder, mode in ((mine, 0o644), (theirs, 0o666)):
        folder.mkdir()
        _owned(folder, url, mode)
    assert [s.name for s in read(mine)] == [f"{mine} (one)", f"{mine} (us)"]
    monkeypatch.setattr(sources, "_read_url", None)  # would be another error
    with pytest.raises(InputError, match="another user"):
        read(theirs)


def test_of_a_shared_storage_only_the_studies_of_the_directory_are_read(tmp_path: Path) -> None:
    _owned(tmp_path, made(tmp_path / "o.db", "other", "another"), 0o644)
    with pytest.raises(InputError, match="no study of experiment 'one'"):
        read(tmp_path)


def test_a_password_is_not_shown() -> None:
    with pytest.raises(InputError) as error:
        read("mysql+nothing://ann:secret@host/db#one")
    assert "secret" not in str(error.value)


def test_too_many_searches_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MOST_SEARCHES", 1)
    with pytest.raises(InputError, match="limit is 1"):
        read(made(tmp_path / "a.db", "one"), made(tmp_path / "b.db", "one"))
