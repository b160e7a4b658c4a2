"""Earlier searches are read as they are: running, broken, huge, of other users; never written."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import struct
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.trial import create_trial

from spearmint.errors import InputError
from spearmint.store.earlier import earlier_searches, files, sources, trials
from spearmint.store.sql.sqlite import sqlite_url
from spearmint.transfer import EarlierSearch
from tests.spearmint.store.studies import opened, point

HERE = Path("/nowhere")
SPACE = {"x": FloatDistribution(0.0, 1.0), "act": CategoricalDistribution(["relu", None, 3])}


def read(*names: str | Path) -> list[EarlierSearch]:
    return earlier_searches([str(name) for name in names], HERE)


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return times and bytes of all files; the time of a folder shows files that came and went."""
    return {
        str(p.relative_to(folder)): (p.stat().st_mtime_ns, p.read_bytes() if p.is_file() else b"")
        for p in (folder, *folder.rglob("*"))
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the directory of a search with six complete trials and one that runs."""
    return searched(tmp_path / "a #1 50% dir")


def searched(root: Path) -> Path:
    root.mkdir()
    study = opened(root, sqlite_url(root / "spearmint.db"))
    for i in range(6):
        study.add_complete({"X": (i / 10, 0.5), "act": ("tanh",)}, float(i), source="test")
    study.add_running(point())
    return root


def made(path: Path, *names: str, directions: tuple[str, ...] = ("minimize",)) -> str:
    """Make a database with studies of one trial each, and return its URL."""
    for name in names:
        study = optuna.create_study(
            storage=f"sqlite:///{path}", study_name=name, directions=directions
        )
        values = [0.5] * len(directions)
        study.add_trial(
            create_trial(params={"x": 0.25, "act": 3}, distributions=SPACE, values=values)
        )
    return f"sqlite:///{path}"


def test_a_finished_search_is_read_and_stays_as_it_was(folder: Path) -> None:
    before = contents(folder)
    (search,) = read(folder)
    assert [t.value for t in search.trials] == [0, 1, 2, 3, 4, 5]
    assert search.trials[3].params == {"X[0]": 0.3, "X[1]": 0.5, "act": "tanh"}
    assert (search.name, search.maximize, search.n_complete) == (str(folder), False, 6)
    assert read(folder / "config.pb")[0].trials == search.trials
    assert contents(folder) == before


@pytest.fixture
def running(folder: Path) -> Iterator[Path]:
    with held(folder):
        yield folder


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold a write lock on the database, as a running search does while it stores a result."""
    with closing(sqlite3.connect(folder / "spearmint.db")) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE trial_values SET value = value + 1")
        connection.commit()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE trial_values SET value = 99")
        yield


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


VIEW = (
    "CREATE VIEW {0} AS WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) "
    "SELECT o.* FROM r, other o WHERE r.i < 0"
)


@pytest.mark.parametrize(
    ("table", "sql"),
    [
        *((name, VIEW) for name in ("studies", "trials", "trial_values", "trial_params")),
        ("trials", VIEW.replace("{0}", "TRIALS")),
        ("trial_values", "CREATE VIRTUAL TABLE {0} USING fts4(trial_id, objective, value)"),
        (
            "trial_values",
            "CREATE TABLE {0} (trial_id, objective, value AS (abs(trial_id)))",
        ),
    ],
)
def test_a_table_that_is_a_query_of_another_user_is_refused(
    tmp_path: Path, table: str, sql: str
) -> None:
    """A query that never ends would otherwise run until Ctrl-C."""
    made(tmp_path / "o.db", "one")
    with closing(sqlite3.connect(tmp_path / "o.db")) as connection:
        connection.execute(f"ALTER TABLE {table} RENAME TO other")
        connection.execute(sql.format(table))
        connection.commit()
    with pytest.raises(InputError, match=f"table {table} is not a plain table"):
        read(tmp_path / "o.db")


@pytest.mark.parametrize(
    ("name", "kind"),
    [("studies", "VIEW"), ("studies\0", "view"), (b"studies", "view"), ("studies", "view\0")],
)
def test_a_schema_that_hides_a_view_from_a_comparison_of_texts_is_refused(
    tmp_path: Path, name: str | bytes, kind: str
) -> None:
    made(tmp_path / "o.db", "one")
    with closing(sqlite3.connect(tmp_path / "o.db")) as connection:
        connection.execute("ALTER TABLE studies RENAME TO other")
        connection.execute("PRAGMA writable_schema=1")
        row = (kind, name, "studies", 0, "CREATE VIEW studies AS SELECT * FROM other")
        connection.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", row)
        connection.commit()
    with pytest.raises(InputError, match="table studies is not a plain table"):
        read(tmp_path / "o.db")


def test_queries_of_too_many_steps_and_rows_that_are_too_long_are_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path / "o.db", "one")
    monkeypatch.setattr(files, "_LONGEST_ROW", 2000)
    assert len(read(tmp_path / "o.db")) == 1
    with closing(sqlite3.connect(tmp_path / "o.db")) as connection:
        connection.execute("UPDATE trial_params SET distribution_json = ?", ("x" * 3000,))
        connection.commit()
    with pytest.raises(InputError, match="too big"):
        read(tmp_path / "o.db")
    monkeypatch.setattr(files, "_COUNTED", 1)
    monkeypatch.setattr(files, "_MOST_STEPS", 100)
    with pytest.raises(InputError, match="takes too long"):
        read(tmp_path / "o.db")


def test_a_database_with_more_than_fits_into_memory_is_an_error(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (whole,) = read(folder)
    for most, what in ((3, "names"), (60, "values"), (120, "choices and parameters")):
        monkeypatch.setattr(trials, "MOST_BYTES", most)
        with pytest.raises(InputError, match=r"cannot learn from .*: it has more than") as raised:
            read(folder)
        assert "#STUDY" in raised.value.fix, what
    monkeypatch.setattr(trials, "MOST_BYTES", 1200)
    assert read(folder)[0].trials == whole.trials
    with closing(sqlite3.connect(folder / "spearmint.db")) as connection:
        connection.execute("UPDATE trial_params SET param_name = hex(zeroblob(400)) || param_id")
        connection.commit()
    with pytest.raises(InputError, match="names, values and choices"):
        read(folder)


def test_long_rows_are_read_one_at_a_time(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "spearmint.db")) as connection:
        # Rows of 60 MB, of which the first one is already not a direction.
        connection.executemany(
            "INSERT INTO study_directions (direction, study_id, objective) VALUES (?, 1, ?)",
            (("M" * 3_000_000, i) for i in range(1, 21)),
        )
        connection.commit()
    tracemalloc.start()
    with pytest.raises(InputError):
        read(folder)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30_000_000


def test_a_journal_of_another_user_deletes_no_file(tmp_path: Path) -> None:
    made(tmp_path / "o.db", "one")
    mine = tmp_path / "mine.txt"
    mine.write_text("work\n")
    name, magic = os.fsencode(mine), bytes.fromhex("d9d505f920a163d7")
    pages = (tmp_path / "o.db").stat().st_size // 4096
    begin = magic + struct.pack(">5I", 0, 0, pages, 512, 4096)
    end = struct.pack(">I", 2**18 + 1) + name + struct.pack(">2I", len(name), sum(name)) + magic
    (tmp_path / "o.db-journal").write_bytes(begin.ljust(512, b"\0") + end)
    with pytest.raises(InputError, match="-journal names another file"):
        read(tmp_path / "o.db")
    assert mine.read_text() == "work\n"


@pytest.mark.parametrize("logs", [0, 1], ids=["file", "log"])
def test_a_file_without_space_for_its_copy_is_an_error(
    running: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logs: int
) -> None:
    (tmp_path / "killed").mkdir()
    for name in ("spearmint.db", "spearmint.db-wal"):
        shutil.copy(running / name, tmp_path / "killed" / name)
    free = 2 * logs * (tmp_path / "killed" / "spearmint.db").stat().st_size + 1000
    monkeypatch.setattr(files.shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    with pytest.raises(InputError, match="a copy of"):
        read(tmp_path / "killed")


def _as_nobody(search: Callable[[], str]) -> str:
    """Return what ``search`` returns in a process of another user."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        text = "no answer"
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            text = search()
        finally:
            os.write(writer, text.encode())
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answers:
        text = answers.read()
    os.waitpid(child, 0)
    return text


def _read_or_error(folder: Path) -> str:
    try:
        return str(len(read(folder)[0].trials))
    except InputError as error:
        return str(error)


@pytest.mark.root
def test_another_user_reads_a_search_that_runs_or_is_told_what_is_denied() -> None:
    with tempfile.TemporaryDirectory() as place:  # unlike tmp_path, another user can enter it
        Path(place).chmod(0o755)
        folder = searched(Path(place) / "search")
        with held(folder):
            before = contents(folder)
            assert _as_nobody(lambda: _read_or_error(folder)) == "6"
            assert contents(folder) == before
            for path, mode in ((folder, 0o700), (folder / "spearmint.db", 0o600)):
                kept = path.stat().st_mode
                path.chmod(mode)
                said = _as_nobody(lambda: _read_or_error(folder))
                path.chmod(kept)
                assert f"permission denied: {folder}" in said
                assert "chmod -R go+rX" in said
