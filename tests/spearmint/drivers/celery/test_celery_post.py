"""Messages and pieces of files for hosts that share none, also those of an attacker."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

import pytest

from spearmint.drivers.celery.broker import Broker
from spearmint.drivers.celery.job import described
from spearmint.drivers.celery.messages import NotHere, Refused, arguments, checked
from spearmint.drivers.celery.post import check_transfer
from spearmint.drivers.celery.post.courier import Courier, Over
from spearmint.drivers.celery.post.grants import Digests, Packed, Packing
from spearmint.drivers.celery.post.guest import Guest
from spearmint.drivers.celery.post.host import Host
from spearmint.drivers.celery.post.names import Names, new_search, new_start
from spearmint.drivers.celery.post.pieces import (
    PIECE,
    WINDOW,
    Incoming,
    Outgoing,
    digest_of,
    want_of,
)
from spearmint.drivers.celery.post.place import Place, Places
from spearmint.drivers.celery.post.postman import Postman
from spearmint.drivers.celery.post.seal import opened, seal
from spearmint.drivers.celery.records import Records
from spearmint.drivers.queue import SubmitSpec
from spearmint.errors import InputError
from spearmint.layout import TrialFolder, write_json
from spearmint.resources import Resources
from spearmint.trial.transport.parcel import Header
from tests.spearmint.drivers.celery.post_store import MemoryStore
from tests.waiting import until

SIZE = 3 * WINDOW * PIECE + 17


def key(digest: str, number: int) -> str:
    return f"{digest}:{number}"


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "large"
    path.write_bytes(os.urandom(SIZE))
    return path


def move(outgoing: Outgoing, incoming: Incoming, steps: int = 1000) -> None:
    for _ in range(steps):
        outgoing.serve(incoming.want)
        incoming.take()
        if incoming.is_complete:
            return
    pytest.fail("the file does not arrive")


def test_few_pieces_of_a_file_are_in_redis(store: MemoryStore, file: Path, tmp_path: Path) -> None:
    digest = digest_of(file)
    with (tmp_path / "copy").open("w+b") as target:
        move(Outgoing(store, key, file, digest), Incoming(store, key, digest, SIZE, target))
        target.seek(0)
        assert target.read() == file.read_bytes()
    assert not store.pieces
    assert store.most == WINDOW * PIECE


@pytest.mark.parametrize("damage", ["changed", "longer", "lost"])
def test_damaged_pieces_are_wanted_again(
    store: MemoryStore, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setattr("spearmint.drivers.celery.post.pieces._AGAIN_S", 0.0)
    digest = digest_of(file)
    outgoing = Outgoing(store, key, file, digest)
    with (tmp_path / "copy").open("w+b") as target:
        incoming = Incoming(store, key, digest, SIZE, target)
        outgoing.serve(incoming.want)
        name = key(digest, 3)
        data = store.pieces.pop(name)
        store.pieces |= {"changed": {name: b"x" * len(data)}, "longer": {name: data * 2}}.get(
            damage, {}
        )
        incoming.take()
        move(outgoing, incoming)
        target.seek(0)
        assert target.read() == file.read_bytes()


@pytest.mark.parametrize(
    "value", [None, [], ["x", 0], ["x", -1, 2], ["x", 0, WINDOW + 1], ["x", 2, 2], [1, 0, 1], {}]
)
def test_wants_that_are_invalid(value: object) -> None:
    assert want_of(value) is None


def test_a_message_means_nothing_elsewhere() -> None:
    names = Names(new_search())
    start = new_start("0" * 12 + "." + "1" * 12)
    sealed = seal("k", names.context("host", start), {"end": 1}).encode()
    assert opened("k", names.context("host", start), sealed) == {"end": 1}
    others = [names.context("controller", start), names.context("host", start[:-1] + "g")]
    others.append(Names(new_search()).context("host", start))
    assert all(opened("k", context, sealed) is None for context in others)
    assert opened("other", names.context("host", start), sealed) is None
    for text in (None, b"", b"[]", b"[1]", b"{}", b"[1, 2]", b'["a", "b"]', b"\xff", b"[" * 9999):
        assert opened("k", names.context("host", start), text) is None


class PackingToItsEnd(Packing):
    """Packs before the first answer, however busy the machine is."""

    def start(self, work: Callable[[], Packed], then: Callable[[], None]) -> Future[Packed]:
        future = super().start(work, then)
        wait([future])
        return future


class Bed:
    """A controller's guest and a host's place for one job, with a store in memory."""

    def __init__(self, store: MemoryStore, base: Path) -> None:
        self.store, self.experiment = store, base / "e"
        folder = TrialFolder(self.experiment / "jobs" / "1")
        folder.path.mkdir(parents=True)
        (self.experiment / "wrapper.py").write_text("x = 1\n")
        write_json(folder.spec, {"key": "k", "directory": str(self.experiment)})
        spec = SubmitSpec(
            token="0123456789ab",  # noqa: S106
            label="trial",
            argv=("x",),
            directory=self.experiment,
            output=self.experiment / "out",
            environment={"PYTHONPATH": "/of/the/controller", "MINE": "1"},
            resources=Resources(gpus=0, venv=Path("/opt/v")),
            folder=folder.path,
        )
        self.records = Records(self.experiment)
        self.names = Names(self.records.name_search(new_search()))
        self.job = self.records.create(spec.token, described(spec, fence_s=15, is_sent=True))
        self.start = new_start(self.job)
        self.allowed = True

    def guest(self) -> Guest:
        return Guest(
            self.start,
            self.job,
            records=self.records,
            experiment=self.experiment,
            store=self.store,
            names=self.names,
            digests=Digests(),
            packing=PackingToItsEnd(),
            may_move=lambda start: self.allowed,
        )

    def offer(self, data: bytes, name: str) -> dict[str, Any]:
        path = self.experiment / "offered"
        path.write_bytes(data)
        digest = digest_of(path)
        host = lambda d, n: self.names.piece(self.start, "host", d, n)  # noqa: E731
        Outgoing(self.store, host, path, digest).serve((digest, 0, 1))
        return {"name": name, "digest": digest, "size": len(data)}


@pytest.fixture
def bed(store: MemoryStore, tmp_path: Path) -> Bed:
    return Bed(store, tmp_path)


def test_a_grant_has_nothing_of_the_controller(bed: Bed) -> None:
    grant = bed.guest().answer({"lease": "1"})["grant"]
    assert grant["environment"] == {"MINE": "1"}
    assert grant["venv"] == "/opt/v"
    assert set(grant["files"]) == {"spec.zip", "state.zip", "code.zip", "experiment.zip"}
    assert "inline" in grant["files"]["spec.zip"]
    assert (bed.records.folder(bed.job) / "lease").read_text().strip() == "1"


def test_a_controller_that_was_killed_finds_its_box(bed: Bed) -> None:
    bed.guest().answer({})
    bed.guest().answer({})
    boxes = list((bed.experiment / ".spearmint" / "transfer").glob("0123456789ab.*"))
    assert len(boxes) == 1


@pytest.mark.parametrize(
    "name",
    ["../x.parcel", "/x.parcel", ".x.parcel", "x", "state.zip", "address.json", "a\0.parcel"],
)
def test_names_that_no_host_sends(bed: Bed, name: str) -> None:
    guest = bed.guest()
    say = guest.answer({"ready": True, "offer": bed.offer(b"data", name), "end": {}})
    assert "got" not in say
    assert "over" not in say
    found = [p for p in bed.experiment.rglob("*") if p.is_file() and p.read_bytes() == b"data"]
    assert [path.name for path in found] == ["offered"]


def test_the_end_comes_after_the_files(bed: Bed) -> None:
    guest, name = bed.guest(), Header(key="k", run=1, number=1, start="a").name
    guest.answer({})
    bed.allowed = False
    offer = bed.offer(b"x" * PIECE, name)
    say = guest.answer({"ready": True, "offer": offer, "end": {"exit_status": 0}})
    assert "over" not in say
    assert "want" not in say, "eight other files are on their way"
    bed.allowed = True
    assert guest.answer({"ready": True, "offer": offer, "end": {"exit_status": 0}}) == {
        "over": True
    }
    [record] = bed.records.all()
    assert record.end == {"exit_status": 0}
    [box] = (bed.experiment / ".spearmint" / "transfer").glob("0123456789ab.*")
    assert (box / name).read_bytes() == b"x" * PIECE
    assert bed.guest().answer({"offer": offer, "end": {}}) == {"over": True}, "a late repetition"


def test_running_trials_do_not_wait_for_the_files_of_another(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gigabytes of data take longer to pack than the lease of a running trial lasts."""
    bed.guest().answer({"who": {}, "lease": "1", "ready": True})
    begins, may_end, stops = threading.Event(), threading.Event(), threading.Event()

    def packs(*arguments: object) -> None:
        begins.set()
        may_end.wait()
        raise OSError("a full disk")

    monkeypatch.setattr("spearmint.drivers.celery.post.guest.open_box", packs)
    job = bed.records.create("b" * 12, bed.records.job(bed.job) or {})
    second = new_start(job)

    def say(start: str, **content: object) -> None:
        text = seal("k", bed.names.context("host", start), {"who": {}, **content})
        bed.store.write(bed.names.said_by("host"), {start: text})

    def answer() -> dict[str, Any]:
        sealed = bed.store.some(bed.names.said_by("controller"), [second]).get(second)
        return opened("k", bed.names.context("controller", second), sealed) or {}

    say(bed.start, lease="1", ready=True)
    say(second, lease="1")
    postman = Postman(bed.store, "k", bed.experiment, stops)
    postman.start()
    try:
        assert begins.wait(60)
        say(bed.start, lease="2", ready=True)
        lease = bed.records.folder(bed.job) / "lease"
        until(lambda: lease.read_text().strip() == "2", 60)
        until(lambda: "busy" in answer(), 60)
        assert not answer()["grant"]
    finally:
        may_end.set()
        stops.set()
        postman.join()


def test_a_host_waits_while_the_controller_is_busy(bed: Bed) -> None:
    guest = bed.guest()
    digest = guest.answer({})["grant"]["files"]["code.zip"]["digest"]
    bed.allowed = False
    assert "busy" in guest.answer({"need": [digest, 0, 1]}), "eight other files are on their way"
    bed.allowed = True
    assert "busy" not in guest.answer({"need": [digest, 0, 1]})
    place = Places(bed.experiment).new(bed.start)
    os.close(place.create(bed.names.search))
    courier = Courier(bed.store, "k", bed.names, place, {})
    for busy in (1, 2):
        courier.moved = 0.0
        courier._hear({"busy": busy})
        assert courier.moved > 0
    courier.moved = 0.0
    courier._hear({"busy": 2})
    assert courier.moved == 0, "the controller has ended"
    with pytest.raises(Over):
        courier.grant(0.0)


def test_an_experiment_that_is_too_large_ends_the_job(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spearmint.trial.transport.inputs._MOST_BYTES", 1)
    assert bed.guest().answer({}) == {"over": True}
    [record] = bed.records.all()
    assert "too much to send" in (record.end or {})["failure"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "root"
    path.mkdir()
    return path


def test_a_root_that_others_can_write(root: Path) -> None:
    root.chmod(0o777)
    with pytest.raises(PermissionError):
        Places(root)
    root.chmod(0o1777)
    Places(root)
    (root / ".spearmint-worker").chmod(0o755)
    with pytest.raises(PermissionError):
        Places(root)


@pytest.mark.parametrize("name", ["../x", "/tmp/x", "a/b", "..", ""])
def test_a_grant_cannot_write_outside(store: MemoryStore, root: Path, name: str) -> None:
    host = Host(store, "k", root, {})
    place = Places(root).new(new_start("0" * 12 + "." + "1" * 12))
    os.close(place.create(new_search()))
    courier = Courier(store, "k", Names(new_search()), place, {})
    empty = hashlib.sha256().hexdigest()
    about = {"digest": empty, "size": 0, "shared": False, "inline": ""}
    with pytest.raises(ValueError, match="invalid file"):
        host._bring(place, courier, name, about)
    assert not (root / "x").exists()


def test_a_place_sends_the_output_of_a_job_that_did_not_start(root: Path) -> None:
    place: Place = Places(root).new(new_start("0" * 12 + "." + "1" * 12))
    os.close(place.create(new_search()))
    place.output.write_text("no such module\n")
    assert place.parcels() == []
    write_json(place.record / "end", {"exit_status": 1})
    [path] = place.parcels()
    assert path.read_text() == "no such module\n"
    path.unlink()
    assert place.parcels() == []


@pytest.mark.parametrize("has_end", [True, False], ids=["ended", "killed"])
def test_files_are_kept_for_a_week_after_the_end_of_a_long_trial(
    store: MemoryStore, root: Path, monkeypatch: pytest.MonkeyPatch, has_end: bool
) -> None:
    monkeypatch.setattr("spearmint.drivers.celery.post.host._LEFT_S", 0.01)
    host, week = Host(store, "k", root, {}), 7 * 86400
    place = Places(root).new(new_start("0" * 12 + "." + "1" * 12))
    os.close(place.create(new_search()))
    os.utime(place.path / "about.json", (0, 0))
    if has_end:
        write_json(place.record / "end", {"exit_status": 0})

    def send_left() -> None:
        lock = place.take_lock()
        assert lock is not None
        host._send_left(place, lock)

    send_left()
    assert place.end() is not None, "nothing was sent, so nothing is deleted"
    old = time.time() - week - 60
    os.utime(place.record / "end", (old, old))
    send_left()
    assert not place.path.exists()


def test_messages_about_other_directories(tmp_path: Path) -> None:
    search, id = new_search(), "0" * 12 + "." + "1" * 12
    records = Records(tmp_path)
    message = checked(arguments("k", "q", tmp_path, id, search), key="k", queues=["q"])
    with pytest.raises(NotHere):
        message.records([tmp_path / "other"])
    with pytest.raises(NotHere):  # the same path, another directory
        message.records([tmp_path])
    records.name_search(search)
    assert message.records([tmp_path]).base == records.base
    with pytest.raises(NotHere):
        checked(arguments("k", "q", None, id, search), key="k", queues=["q"]).records([tmp_path])
    for bad in ("x", "../" + search, search[:-1]):
        with pytest.raises(Refused):
            checked(arguments("k", "q", None, id, bad), key="k", queues=["q"])


def test_a_search_keeps_its_name(tmp_path: Path) -> None:
    first = Records(tmp_path).name_search("a")
    assert Records(tmp_path).name_search("b") == first == Records(tmp_path).search() == "a"
    assert [path.name for path in Records(tmp_path).base.glob("new.*")] == []


@pytest.mark.parametrize(
    ("broker", "word"),
    [
        (Broker("redis://h"), "needs a key"),
        (Broker("amqp://h", "k"), "RabbitMQ cannot carry files"),
    ],
)
def test_what_file_transfer_needs(broker: Broker, word: str) -> None:
    check_transfer("auto", broker)
    with pytest.raises(InputError, match=word):
        check_transfer("yes", broker)


def test_rabbitmq_with_a_redis() -> None:
    check_transfer("yes", Broker("amqp://h", "k", files="redis://f"))
    assert "secret" not in repr(Broker("amqp://h", "secret", files="redis://:secret@f"))
    assert json.dumps(str(Broker("redis://:secret@h"))) == '"redis://h"'
