"""What a host sends arrives whole, in order, once: whatever is lost, late or truncated."""

from __future__ import annotations

import itertools
import os
import shutil

from spearmint.layout import read_json
from spearmint.trial.transport.mailroom import OUTBOX, Address
from tests.spearmint.trial.transport.sides import KEY, TOKEN, Job


def test_output_reports_and_files_arrive_while_the_trial_runs(job: Job) -> None:
    host = job.host()
    host.prints("one\n")
    (host.folder.files / "sub dir").mkdir()
    (host.folder.files / "sub dir" / "checkpoint").write_text("1")
    host.post()
    job.receive()
    assert job.content()["output"] == "one\n"
    host.prints("two\n")
    host.folder.reports.write_text("1,0.5\n")
    host.post(with_files=False)
    job.receive()
    assert job.content() == {
        "trial.json": f'{{"key": "{KEY}"}}',
        "output": "one\ntwo\n",
        "reports.csv": "1,0.5\n",
        "files/sub dir/checkpoint": "1",
    }
    assert host.packer.pack(job.packed, with_files=True) is None


def test_deleted_files_links_and_modes(job: Job) -> None:
    host = job.host()
    for name in ("old", "tool"):
        (host.folder.files / name).write_text(name)
    host.post()
    job.receive()
    (host.folder.files / "old").unlink()
    (host.folder.files / "tool").chmod(0o755)
    (host.folder.files / "latest").symlink_to("tool")
    (host.folder.files / "empty").mkdir()
    os.mkfifo(host.folder.files / "fifo")
    host.post()
    job.receive()
    files = job.folder.files
    assert sorted(path.name for path in files.iterdir()) == ["empty", "latest", "tool"]
    assert os.access(files / "tool", os.X_OK)
    assert str((files / "latest").readlink()) == "tool"


def test_twice_and_out_of_order(job: Job) -> None:
    host = job.host()
    parcels = []
    for step in range(4):
        host.prints(f"{step}\n")
        (host.folder.files / "step").write_text(str(step))
        parcels.append(host.post())
        (job.box / parcels[-1].name).unlink()
    for order in ([1, 0], [3, 3, 2], [0, 1, 2, 3], [3]):
        for number in order:
            shutil.copy2(parcels[number], job.box)
            job.receive()
    assert job.content()["output"] == "0\n1\n2\n3\n"
    assert job.content()["files/step"] == "3"
    assert not list(job.box.glob("*.parcel"))


def test_a_rerun_appends_to_the_output_and_continues_from_the_files(job: Job) -> None:
    first = job.host()
    first.prints("first\n")
    (first.folder.files / "step").write_text("1")
    first.post()
    job.receive()
    second = job.host()
    assert (second.folder.files / "step").read_text() == "1"
    second.prints("second\n")
    first.prints("late\n")
    late = first.pack()
    second.post()
    job.receive()
    shutil.copy2(late, job.box)
    job.receive()
    assert job.content()["output"] == "first\nsecond\n"
    assert job.content()["files/step"] == "1"


def test_runs_with_equal_numbers(job: Job) -> None:
    """Hosts that cannot read the job's ad number each run the same."""
    first = job.host()
    first.prints("first\n")
    (first.folder.files / "step").write_text("1")
    first.post()
    first.prints("more\n")
    first.post()
    job.receive()
    job.runs = itertools.count(1)
    shutil.rmtree(first.folder.path.parent)
    second = job.host(start="another")
    second.prints("second\n")
    (second.folder.files / "step").write_text("2")
    second.folder.result.write_text(f'{{"key": "{KEY}"}}')
    path = second.post()
    job.receive()
    for _ in range(2):
        assert job.content()["output"] == "first\nmore\nsecond\n"
        assert job.content()["files/step"] == "2"
        assert job.folder.result.exists()
        shutil.copy2(path, job.box)
        job.receive()


def test_a_late_result_is_kept(job: Job) -> None:
    first, second = job.host(), job.host()
    first.prints("first\n")
    first.post()
    second.prints("second\n")
    (second.folder.files / "step").write_text("2")
    second.post()
    job.receive()
    first.folder.result.write_text(f'{{"key": "{KEY}"}}')
    first.post()
    job.receive()
    assert job.folder.result.exists()
    assert job.content()["files/step"] == "2"


def test_a_truncated_parcel_waits_for_the_rest(job: Job) -> None:
    host = job.host()
    host.prints("x" * 5000)
    (host.folder.files / "step").write_bytes(os.urandom(5000))
    path = host.pack()
    whole = path.read_bytes()
    (job.box / OUTBOX).mkdir()
    for size in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        (job.box / OUTBOX / path.name).write_bytes(whole[:size])
        job.receive()
        assert job.content() == {"trial.json": f'{{"key": "{KEY}"}}', "output": ""}
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 1
    (job.box / OUTBOX / path.name).write_bytes(damaged)
    job.receive()
    assert not job.output.exists()
    (job.box / OUTBOX / path.name).write_bytes(whole)
    job.receive()
    assert job.output.read_text() == "x" * 5000


def test_a_parcel_of_another_attempt_changes_nothing(job: Job) -> None:
    other = job.host(key="k0")
    other.folder.result.write_text('{"key": "k0"}')
    path = other.post()
    job.receive()
    assert not job.folder.result.exists()
    assert not (job.box / path.name).exists()


def test_mailboxes_are_deleted_after_the_result(job: Job) -> None:
    job.receive()
    job.room.receive(set())
    assert job.box.exists(), "the job may be listed in a moment"
    host = job.host()
    host.folder.result.write_text(f'{{"key": "{KEY}"}}')
    host.post()
    job.room.receive(set())
    assert job.folder.result.exists()
    assert not job.box.exists()


def test_a_new_submission_gets_a_new_mailbox(job: Job) -> None:
    (job.folder.files).mkdir()
    (job.folder.files / "step").write_text("7")
    seen = read_json(job.box / "address.json")
    assert seen is not None
    again = job.room.open_box(TOKEN, Address(**seen), {})
    assert again != job.box
    assert not job.box.exists()
    job.box = again
    assert (job.host().folder.files / "step").read_text() == "7"
