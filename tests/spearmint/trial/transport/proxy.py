"""A stand-in for the proxy of HTCondor's starter, by which jobs use files of the submit side."""

from __future__ import annotations

import os
import re
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

COOKIE = "c00k1e"


class _Handler(socketserver.StreamRequestHandler):
    server: Proxy

    def handle(self) -> None:
        files: dict[int, int] = {}
        while line := self.rfile.readline():
            words = re.findall(r"(?:\\.|\S)+", line.decode())
            name, *arguments = [re.sub(r"\\(.)", r"\1", word) for word in words]
            self.wfile.write(self._answer(name, arguments, files))

    def _answer(self, name: str, arguments: list[str], files: dict[int, int]) -> bytes:
        proxy = self.server
        if name == "cookie":
            return b"0\n" if arguments == [COOKIE] else b"-1\n"
        if name == "open":
            if arguments[1] == "r":
                proxy.read.append(arguments[0])
                fd = os.open(proxy.inside(arguments[0]), os.O_RDONLY)
            else:
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
                fd = os.open(proxy.inside(arguments[0]), flags, 0o600)
            return b"%d\n1 2 3 4 5 6 7 8 9 10 11 12 13\n" % fd
        if name == "read":
            data = os.read(int(arguments[0]), int(arguments[1]))
            return b"%d\n" % len(data) + data
        if name == "write":
            data = self.rfile.read(int(arguments[1]))
            if proxy.fails_after is not None:
                proxy.fails_after -= len(data)
                if proxy.fails_after < 0:
                    return b"-6\n"  # no space
            return b"%d\n" % os.write(int(arguments[0]), data)
        if name == "close":
            os.close(int(arguments[0]))
        elif name == "rename":
            proxy.inside(arguments[0]).replace(proxy.inside(arguments[1]))
            proxy.renamed.append(arguments[1])
            if proxy.loses_answers:
                return b"-17\n"
        return b"0\n"


class Proxy(socketserver.ThreadingTCPServer):
    """Attributes: fails_after: bytes until the disk is full; loses_answers: of renames."""

    daemon_threads = True
    fails_after: int | None = None
    loses_answers = False

    def __init__(self, directory: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.directory, self.renamed, self.read = directory, list[str](), list[str]()

    def inside(self, path: str) -> Path:
        return self.directory / path

    def configuration(self, file: Path) -> Path:
        """Write the file by which a job finds it."""
        host, port = self.server_address[:2]
        file.write_text(f"{host!s} {port} {COOKIE}\n")
        return file


@contextmanager
def proxy_of(directory: Path) -> Iterator[Proxy]:
    """Run a proxy that writes to ``directory``."""
    with Proxy(directory) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, args=(0.05,))
        thread.start()
        yield proxy
        proxy.shutdown()
        thread.join()
