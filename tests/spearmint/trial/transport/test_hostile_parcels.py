"""A parcel that no job writes changes nothing outside of its trial, and delays no other."""

from __future__ import annotations

import errno
import json
import os
import stat
import zipfile
from pathlib import Path

import pytest

from spearmint.errors import DriverUnreachable
from spearmint.trial.transport import mailroom
from spearmint.trial.transport.parcel import Parcel
from tests.spearmint.trial.transport.sides import KEY, Job

HEADER = {"key": KEY, "run": 1, "start": "a", "number": 1, "offset": 0, "has_files": True}
Entries = list[tuple[str, int, bytes]]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def forge(job: Job, entries: Entries, **header: object) -> Path:
    """Write a parcel into the mailbox with any header and files: (name, mode, content)."""
    path = job.box / "00000001-00000001-a.parcel"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("parcel.json", json.dumps(HEADER | header))
        for name, mode, content in entries:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            archive.writestr(info, content)
    return path


LINK, FILE, FOLDER = stat.S_IFLNK | 0o777, stat.S_IFREG | 0o644, stat.S_IFDIR | 0o755
ELSEWHERE = "../../../home"
ESCAPES: dict[str, Entries] = {
    "dots": [("files/../../../home/keys", FILE, b"x")],
    "absolute": [("files//tmp/keys", FILE, b"x")],
    "below a link": [("files/a", LINK, ELSEWHERE.encode()), ("files/a/keys", FILE, b"x")],
    "before the link": [("files/a/keys", FILE, b"x"), ("files/a", LINK, ELSEWHERE.encode())],
    "link below a link": [("files/a", LINK, ELSEWHERE.encode()), ("files/a/keys", LINK, b"/etc")],
    "folder and link": [("files/a/", FOLDER, b""), ("files/a", LINK, ELSEWHERE.encode())],
    "top": [("..", FILE, b"x")],
    "link at the top": [(".files.new", LINK, ELSEWHERE.encode())],
    "spec": [("trial.json", FILE, b"{}")],
}


@pytest.mark.parametrize("case", ESCAPES)
def test_a_parcel_cannot_write_elsewhere(job: Job, tmp_path: Path, case: str) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    entries = [
        (name, mode, str(home).encode() if content == ELSEWHERE.encode() else content)
        for name, mode, content in ESCAPES[case]
    ]
    path = forge(job, entries)
    job.receive()
    assert not list(home.iterdir())
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert job.content() == {"trial.json": f'{{"key": "{KEY}"}}', "output": ""}
    assert path.with_name(path.name + ".bad").exists()


WRONG: list[dict[str, object]] = [
    {"run": "x"},
    {"run": -1},
    {"number": 1.5},
    {"number": True},
    {"offset": -5},
    {"offset": 1 << 80},
    {"start": "../../x"},
    {"key": None},
    {"has_files": 1},
    {"more": 1},
]


@pytest.mark.parametrize("header", WRONG)
def test_a_wrong_header_delays_no_other_parcel(job: Job, header: dict[str, object]) -> None:
    path = forge(job, [("output", FILE, b"y")], **header)
    host = job.host()
    host.prints("one\n")
    host.post()
    job.receive()
    assert job.content()["output"] == "one\n"
    assert [file.name for file in job.box.glob("*.parcel*")] == [path.name + ".bad"]


def test_a_name_too_long_for_the_submit_side(job: Job, caplog: pytest.LogCaptureFixture) -> None:
    path = forge(job, [("files/" + "x" * 300, FILE, b"x")])
    job.receive()
    assert path.with_name(path.name + ".bad").exists()
    assert path.name in caplog.text


def test_a_parcel_waits_while_the_disk_is_full(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(parcel: Parcel, folder: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = forge(job, [("files/step", FILE, b"1")])
    with monkeypatch.context() as patch:
        patch.setattr(mailroom, "restore", full)
        with pytest.raises(DriverUnreachable, match="space"):
            job.receive()
    assert path.exists()
    job.receive()
    assert job.content()["files/step"] == "1"


# What a job does write arrives as it was


def test_private_files_stay_private(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    host = job.host()
    secret = host.folder.files / "secret"
    secret.mkdir(mode=0o700)
    (secret / "token").write_text("x")
    (secret / "key").write_text("x")
    (secret / "key").chmod(0o600)
    host.folder.files.chmod(0o750)
    host.post()
    modes: list[int] = []
    create = os.open

    def watch(path: Path, flags: int, mode: int = 0o777, **named: int) -> int:
        found = create(path, flags, mode, **named)
        if flags & os.O_CREAT:
            modes.append(stat.S_IMODE(os.fstat(found).st_mode))
        return found

    monkeypatch.setattr(os, "open", watch)
    job.receive()
    files = job.folder.files
    found = {name: stat.S_IMODE((files / name).stat().st_mode) for name in ("", "secret")}
    assert found == {"": 0o750, "secret": 0o700}
    assert stat.S_IMODE((files / "secret" / "key").stat().st_mode) == 0o600
    assert modes
    assert not any(mode & 0o077 for mode in modes)  # also before the content is there


def test_the_newest_file_stays_the_newest(job: Job) -> None:
    host = job.host()
    names = ["epoch_9", "epoch_10", "run_9/w", "run_10/w"]
    for second, name in enumerate(names):
        path = host.folder.files / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
        for changed in {path, path.parent} - {host.folder.files}:
            os.utime(changed, ns=(0, 10**18 + second * 10**9 + 123_456_789))
    host.post()
    job.receive()
    for files in (job.folder.files, job.host().folder.files):
        for pattern, newest in {"epoch_*": "epoch_10", "run_*": "run_10"}.items():
            assert max(files.glob(pattern), key=lambda path: path.stat().st_mtime_ns).name == newest
        assert (files / "epoch_9").stat().st_mtime_ns == 10**18 + 123_456_789


def test_names_that_are_not_utf8(job: Job) -> None:
    host = job.host()
    names = [os.fsdecode(b"caf\xe9"), "café", os.fsdecode(b"\xff/x"), "日本"]
    for name in names:
        (host.folder.files / name).parent.mkdir(exist_ok=True)
        (host.folder.files / name).write_text(name.encode("utf-8", "replace").decode())
    (host.folder.files / "link").symlink_to(names[0])
    host.post()
    job.receive()
    for files in (job.folder.files, job.host().folder.files):
        assert all((files / name).is_file() for name in [*names, "link"])
