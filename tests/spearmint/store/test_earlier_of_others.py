"""Earlier searches of other users: hostile contents, too much of it, and denied access."""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
import tempfile
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from spearmint.errors import InputError
from spearmint.store.earlier import files, trials
from tests.spearmint.store.earlier import contents, held, made, read, searched

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
