"""Debian's Grid Engine packages: fetched once, checked, and refused if they are not genuine."""

from __future__ import annotations

import dataclasses
import hashlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sge_jobs import DEBIAN_PACKAGES
from starcluster.errors import StarClusterError
from starcluster.setup import packages
from starcluster.setup.packages import fetch

CONTENT = b"a package" * 1000
PACKAGE = dataclasses.replace(
    DEBIAN_PACKAGES[1], size=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest()
)


class Mirror:
    """A web server whose files a test sets; it counts requests, and can cut or delay answers."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.cut = False
        mirror = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                mirror.asked.append(self.path)
                data = mirror.files.get(self.path)
                if data is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data[: len(data) // 2] if mirror.cut else data)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/pool/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def give(self, data: bytes) -> None:
        """Serve the package under its name as S3 reads it: there, a plain + is a space."""
        name = PACKAGE.file.replace("+", "%2B")
        for folder in ("/pool", f"/pool/{PACKAGE.folder}"):  # of the user, as of Debian
            self.files[f"{folder}/{name}"] = data


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    made = Mirror()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(packages, "DEBIAN_MIRRORS", ())
    return tmp_path / "cache"


def test_a_package_is_downloaded_once_and_checked_again_in_the_cache(
    mirror: Mirror, cache: Path
) -> None:
    mirror.give(CONTENT)
    assert fetch(PACKAGE, mirror.url, cache) == CONTENT
    assert fetch(PACKAGE, mirror.url, cache) == CONTENT
    assert len(mirror.asked) == 1
    (kept,) = cache.iterdir()
    kept.write_bytes(CONTENT[:-1])  # by a full disk
    assert fetch(PACKAGE, mirror.url, cache) == CONTENT
    assert len(mirror.asked) == 2


@pytest.mark.parametrize("data", [CONTENT[:-1] + b"?", CONTENT + b"?", CONTENT[:-1], b""])
def test_other_content_is_refused_and_not_kept(mirror: Mirror, cache: Path, data: bytes) -> None:
    mirror.give(data)
    with pytest.raises(StarClusterError) as caught:
        fetch(PACKAGE, mirror.url, cache)
    assert PACKAGE.file in caught.value.what
    assert PACKAGE.sha256 in caught.value.what
    assert "gridengine_packages" in caught.value.what
    assert not cache.exists()


def test_a_directory_is_checked_too(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(StarClusterError, match="No such file"):
        fetch(PACKAGE, str(tmp_path), cache)
    (tmp_path / PACKAGE.file).write_bytes(CONTENT + b"?")
    with pytest.raises(StarClusterError, match="SHA-256"):
        fetch(PACKAGE, str(tmp_path), cache)
    (tmp_path / PACKAGE.file).write_bytes(CONTENT)
    assert fetch(PACKAGE, str(tmp_path), cache) == CONTENT


@pytest.mark.parametrize("fault", ["missing", "wrong", "cut", "closed"])
def test_the_second_mirror_has_what_the_first_has_not(
    mirror: Mirror, cache: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    first = Mirror()
    if fault != "missing":
        first.give(CONTENT if fault == "cut" else b"a login page of a hotel")
    first.cut = fault == "cut"
    if fault == "closed":
        first.server.server_close()
    monkeypatch.setattr(packages, "DEBIAN_MIRRORS", (first.url, mirror.url))
    try:
        with pytest.raises(StarClusterError) as caught:
            fetch(PACKAGE, cache=cache)
        assert first.url in caught.value.what
        assert f"{mirror.url}{PACKAGE.folder}/{PACKAGE.file}: Not Found" in caught.value.what
        mirror.give(CONTENT)
        assert fetch(PACKAGE, cache=cache) == CONTENT
    finally:
        first.server.shutdown()
        first.server.server_close()


def test_all_nodes_share_one_download_and_one_failure(
    mirror: Mirror, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages.fetch, "__defaults__", ("", cache))
    downloads = packages._Downloads()

    def ask(_: int) -> object:
        try:
            return downloads.get([PACKAGE], mirror.url)[PACKAGE]
        except StarClusterError as error:
            return error.what

    with ThreadPoolExecutor(20) as pool:
        assert len(set(pool.map(ask, range(20)))) == 1
        assert len(mirror.asked) == 1
        mirror.give(CONTENT)
        downloads = packages._Downloads()  # a rerun
        assert set(pool.map(ask, range(20))) == {CONTENT}
    assert len(mirror.asked) == 2


def test_an_architecture_without_packages_is_named() -> None:
    with pytest.raises(StarClusterError, match="riscv64"):
        packages._needed("riscv64", ["gridengine-common", "gridengine-client"])
    for architecture in ("amd64", "arm64"):
        names = ["gridengine-common", "gridengine-client", "gridengine-exec"]
        found = packages._needed(architecture, names)
        assert [package.name for package in found] == names
