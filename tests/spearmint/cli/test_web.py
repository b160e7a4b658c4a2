"""``-w``: the real dashboard during a real search."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import urllib.error
import urllib.request

import psutil
import pytest

from tests.spearmint.conftest import MakeExperiment
from tests.waiting import is_running, until

SLOW = (
    "import time\ndef main(job_id, params):\n"
    "    time.sleep(0 if job_id == 1 else 100)\n    return 0.5\n"
)


def fetch(url: str, opener: urllib.request.OpenerDirector) -> bytes:
    """Return the answer of ``url`` as soon as there is one."""
    answers: list[bytes] = []

    def is_there() -> bool:
        with (
            contextlib.suppress(OSError),
            opener.open(url, timeout=100) as answer,
        ):
            answers.append(answer.read())
        return bool(answers)

    until(is_there, 100, 0.2)
    return answers[0]


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_the_dashboard_shows_the_search_and_ends_with_it(
    make_experiment: MakeExperiment, end: signal.Signals
) -> None:
    experiment = make_experiment(SLOW)
    controller = experiment.start("-w", "--max-finished-jobs=2")
    assert controller.stdout is not None
    url = None
    while url is None:
        url = re.search(r"(http://127\.0\.0\.1:\d+/)\?key=\S+", controller.stdout.readline())
    page = url[1]
    mine = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    assert b"Optuna Dashboard" in fetch(url.group(), mine)
    assert b"This page reloads" in fetch(f"{page}report", mine)
    delete = urllib.request.Request(f"{page}api/studies/1", method="DELETE")  # noqa: S310
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(delete, timeout=100)  # noqa: S310 - another user of the host
    assert caught.value.code == 403
    caught.value.close()
    studies = json.loads(fetch(f"{page}api/studies", mine))["study_summaries"]
    assert [study["study_name"] for study in studies] == ["trial"]
    servers = [process.pid for process in psutil.process_iter() if _serves(process, page)]
    assert servers
    controller.send_signal(end)
    if end is signal.SIGINT:
        while "Stopping" not in controller.stdout.readline():
            pass
        controller.send_signal(end)
    controller.wait()
    controller.stdout.close()
    until(lambda: not any(map(is_running, servers)))
    assert experiment.command("cleanup").returncode == 0


@pytest.mark.parametrize("options", [["--port={taken}"], ["--host=no.such.host.invalid"]])
def test_an_address_that_cannot_be_used_is_told(
    make_experiment: MakeExperiment, options: list[str]
) -> None:
    experiment = make_experiment()
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        done = experiment.run("-w", *(option.format(taken=taken) for option in options))
    assert done.returncode == 2
    assert "--port=0" in done.stderr
    assert f":{taken}" in done.stderr or "no.such.host.invalid" in done.stderr
    assert "Dashboard: http" not in done.stdout


def _serves(process: psutil.Process, page: str) -> bool:
    port = page.rstrip("/").rpartition(":")[2]
    try:
        return {"spearmint.view.dashboard_server", port} <= set(process.cmdline())
    except psutil.Error:
        return False
