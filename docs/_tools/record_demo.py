"""Record ``make demo`` as an animated SVG for README: run its commands, film the terminal.

    python docs/_tools/record_demo.py --output docs/_static/demo.svg

The commands run in a pseudo-terminal, on a copy of the example in ``--directory``. Idle time is cut
until the loop has ``--seconds``. The last frame is written next to it, as ``demo_last.svg``.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import select
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pyte
from frames_svg import Frame, Row, Run, animation, paced, sampled, still

ROOT = Path(__file__).parents[2]
EXAMPLE = "examples/digits"
COLUMNS, ROWS = 100, 22
_HOLD_S = 5.0
_STEP_S = 0.32
_TYPED_S = 0.25
_LABEL = "Recording of make demo: a search of 40 trials, the test error of the best, the report"


def commands() -> list[list[str]]:
    """Return the commands of ``make demo``, without the installation."""
    lines = subprocess.run(
        ["make", "-n", "demo"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    found = [shlex.split(line) for line in lines if line.startswith(".venv/bin/")]
    return [argv for argv in found if any(word.startswith(EXAMPLE) for word in argv)]


def rows_of(screen: pyte.Screen) -> tuple[Row, ...]:
    """Return the rows of ``screen``, without empty space at their ends."""
    return tuple(_row_of(screen, y) for y in range(screen.lines))


def _row_of(screen: pyte.Screen, y: int) -> Row:
    cells = [screen.buffer[y][x] for x in range(screen.columns)]
    while cells and not cells[-1].data.strip():
        cells.pop()
    runs, column = [], 0
    for (colour, bold), group in groupby(cells, key=lambda cell: (cell.fg, cell.bold)):
        text = "".join(cell.data for cell in group)
        if text.strip():
            blanks = len(text) - len(text.lstrip())
            runs.append(Run(column + blanks, text.strip(), colour, bold))
        column += len(text)
    return tuple(runs)


class Film:
    """A screen and the frames that it showed."""

    def __init__(self) -> None:
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)
        self.frames: list[Frame] = []

    def feed(self, data: bytes) -> None:
        """Show what a program wrote."""
        self._stream.feed(data)

    def expose(self, seconds: float) -> None:
        """Add the screen as it is, shown for ``seconds``."""
        self.frames.append(Frame(rows_of(self._screen), seconds))

    def type_command(self, text: str) -> None:
        """Show a prompt and a command, some letters at a time."""
        self.feed(b"\x1b[1;32m$\x1b[0m ")
        for start in range(0, len(text), 9):
            self.feed(text[start : start + 9].encode())
            self.expose(_TYPED_S)
        self.feed(b"\r\n")

    def run(self, argv: list[str], directory: Path) -> None:
        """Run a program on a terminal of this size, and film it.

        Raises:
            SystemExit: It failed.
        """
        began = time.monotonic()
        for data in output_of(argv, directory):
            now = time.monotonic()
            self.expose(now - began)
            began = now
            self.feed(data)
        self.expose(0.5)


def output_of(argv: list[str], directory: Path) -> Iterator[bytes]:
    """Yield what a program writes to its terminal, as it comes.

    Raises:
        SystemExit: It failed.
    """
    here, there = os.openpty()
    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "PYTHONUNBUFFERED": "1"}
    for name in ("COLUMNS", "LINES", "NO_COLOR"):
        environment.pop(name, None)
    program = subprocess.Popen(
        argv, cwd=directory, env=environment, stdin=there, stdout=there, stderr=there,
        start_new_session=True,
    )  # fmt: skip
    os.close(there)
    try:
        while True:
            ready, _, _ = select.select([here], [], [], 0.2)
            try:
                data = os.read(here, 65536) if ready else b""
            except OSError:  # the program has ended
                break
            if data:
                yield data
            elif ready or program.poll() is not None:
                break
    finally:
        os.close(here)
    if status := program.wait():
        raise SystemExit(f"{shlex.join(argv)} exited with status {status}")


def prepare(directory: Path) -> None:
    """Copy what the commands need, without results of earlier runs."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    (directory / ".venv").symlink_to(Path(sys.executable).parents[1])
    files = subprocess.run(
        ["git", "ls-files", EXAMPLE], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    for name in files:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, directory / name)


def main() -> None:
    """Record and write both pictures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, required=True, help="SVG to write.")
    parser.add_argument(
        "--directory", type=Path, default=Path(tempfile.gettempdir()) / "starmint",
        help="Where the commands run; it is emptied first. Default: starmint in the temporary "
        "directory.",
    )  # fmt: skip
    parser.add_argument(
        "--seconds", type=float, default=26, help="Length of the loop. Default: 26."
    )
    arguments = parser.parse_args()
    prepare(arguments.directory)
    film = Film()
    for argv in commands():
        film.type_command(shlex.join([Path(argv[0]).name, *argv[1:]]))
        film.run(argv, arguments.directory)
    film.type_command("")
    film.expose(_HOLD_S)
    frames = sampled(paced(film.frames, total=arguments.seconds, hold=_HOLD_S), _STEP_S)
    text = animation(frames, columns=COLUMNS, label=_LABEL)
    arguments.output.write_text(text, encoding="utf-8")
    last = still(frames[-1], columns=COLUMNS, label=_LABEL)
    arguments.output.with_stem(f"{arguments.output.stem}_last").write_text(last, encoding="utf-8")
    sys.stdout.write(f"{arguments.output}: {len(frames)} frames, {len(text) / 1000:.0f} kB\n")


if __name__ == "__main__":
    main()
