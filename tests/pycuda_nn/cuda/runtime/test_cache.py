from __future__ import annotations

import errno
import threading
from pathlib import Path

import pytest

from pycuda_nn.cuda.runtime import cache
from pycuda_nn.cuda.runtime.compiler import Compiler, build
from pycuda_nn.errors import KernelBuildError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "a 'cache'"
    monkeypatch.setenv("PYCUDA_NN_CACHE", str(path))
    return path


class Counting(Compiler):
    """Returns its input as code, and counts the calls."""

    name = "counting"

    def __init__(self, version: str = "1") -> None:
        self._version, self.calls = version, 0

    def version(self) -> str:
        return self._version

    def compile(self, source: str, arch: str, options: object) -> bytes:
        self.calls += 1
        if "wrong" in source:
            raise KernelBuildError("line 1: wrong")
        return f"{source} {arch}".encode()


def test_the_same_source_is_compiled_once() -> None:
    compiler = Counting()
    for _ in range(2):
        assert build("a", "sm_90", compiler=compiler) == b"a sm_90"
    assert compiler.calls == 1


@pytest.mark.parametrize(
    ("source", "arch", "options", "version"),
    [("b", "sm_90", (), "1"), ("a", "sm_80", (), "1"), ("a", "sm_90", ("-DX",), "1"),
     ("a", "sm_90", (), "2")],
)  # fmt: skip
def test_whatever_differs_is_compiled_again(
    source: str, arch: str, options: tuple[str, ...], version: str
) -> None:
    build("a", "sm_90", compiler=Counting())
    other = Counting(version)
    build(source, arch, options, compiler=other)
    assert other.calls == 1


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 200])
def test_a_damaged_entry_is_compiled_again(folder: Path, damage: bytes) -> None:
    build("a", "sm_90", compiler=Counting())
    (entry,) = folder.iterdir()
    entry.write_bytes(damage)
    compiler = Counting()
    assert build("a", "sm_90", compiler=compiler) == b"a sm_90"
    assert compiler.calls == 1
    assert build("a", "sm_90", compiler=Counting()) == b"a sm_90"


def test_nothing_is_kept_of_what_does_not_compile(folder: Path) -> None:
    with pytest.raises(KernelBuildError, match="line 1"):
        build("wrong", "sm_90", compiler=Counting())
    assert not folder.exists()


def test_a_folder_that_cannot_be_written_is_no_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write_text("a file is here")
    assert build("a", "sm_90", compiler=Counting()) == b"a sm_90"


def test_a_user_without_a_home_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless(path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("PYCUDA_NN_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "expanduser", homeless)
    assert build("a", "sm_90", compiler=Counting()) == b"a sm_90"


def test_many_at_once_all_read_whole_entries(folder: Path) -> None:
    content, bad = b"x" * 300_000, []

    def work() -> None:
        for _ in range(50):
            cache.keep("entry", content)
            if cache.read("entry") != content:
                bad.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not bad
    assert [path.name for path in folder.iterdir()] == ["entry"]


def test_the_first_entry_stays_unless_it_is_damaged(folder: Path) -> None:
    assert cache.keep("entry", b"first") == b"first"
    assert cache.keep("entry", b"second") == b"first"
    (folder / "entry").write_bytes(b"damaged")
    assert cache.keep("entry", b"third") == b"third"
    assert cache.read("entry") == b"third"
    assert [path.name for path in folder.iterdir()] == ["entry"]


def test_a_file_system_without_links_keeps_entries(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    assert cache.keep("entry", b"x") == b"x"
    assert cache.read("entry") == b"x"
    assert [path.name for path in folder.iterdir()] == ["entry"]


def test_only_the_owner_can_look_into_it(folder: Path) -> None:
    cache.keep("entry", b"x")
    assert folder.stat().st_mode & 0o077 == 0
