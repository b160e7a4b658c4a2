"""A trial on both sides of a transport: its mailbox, and its folder on a host."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

from spearmint.layout import TrialFolder, write_json
from spearmint.trial.transport import restore
from spearmint.trial.transport.mailroom import STATE, Address, Mailroom
from spearmint.trial.transport.parcel import Header, open_parcel
from spearmint.trial.transport.sender import Packer

KEY, TOKEN = "k1", "0123456789ab"


class Job:
    """A trial on both sides: its mailbox, and its folder on a host."""

    def __init__(self, root: Path) -> None:
        self.folder = TrialFolder(root / "jobs" / "a, 'quoted' trial")
        self.folder.path.mkdir(parents=True)
        self.output = root / "out put.txt"
        write_json(self.folder.spec, {"key": KEY})
        self.room = Mailroom(root / "transfer")
        address = Address(folder=str(self.folder.path), output=str(self.output), done="", key=KEY)
        self.box = self.room.open_box(TOKEN, address, {})
        self.packed = root / "packed"
        self.packed.mkdir()
        self.runs = itertools.count(1)

    def host(self, key: str = KEY, start: str = "") -> Host:
        return Host(self, next(self.runs), key, start)

    def receive(self) -> None:
        self.room.receive({TOKEN})

    def content(self) -> dict[str, str]:
        """Return all files of the trial, and its output."""
        paths = [path for path in self.folder.path.rglob("*") if path.is_file()]
        found = {str(path.relative_to(self.folder.path)): path.read_text() for path in paths}
        return found | {"output": self.output.read_text() if self.output.exists() else ""}


class Host:
    """One run of a trial on a host."""

    def __init__(self, job: Job, run: int, key: str, start: str) -> None:
        self._job = job
        root = job.packed.parent / f"host{run}"
        self.folder = TrialFolder(root / "trial")
        self.folder.files.mkdir(parents=True)
        with open_parcel(job.box / STATE) as state:
            assert state is not None
            restore.restore(state, self.folder)
        self.output = root / "output.txt"
        self.output.touch()
        header = Header(key=key, run=run, start=start or f"start{run}")
        self.packer = Packer(self.folder, self.output, header)

    def prints(self, text: str) -> None:
        with self.output.open("a") as file:
            file.write(text)

    def pack(self, *, with_files: bool = True) -> Path:
        path = self.packer.pack(self._job.packed, with_files=with_files)
        assert path is not None
        return path

    def post(self, *, with_files: bool = True) -> Path:
        """Deliver what has changed; return a copy of the parcel."""
        path = self.pack(with_files=with_files)
        shutil.copy2(path, self._job.box)
        self.packer.delivered()
        return path
