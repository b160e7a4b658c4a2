"""The address of this machine: public, or that toward a private network."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from starcluster.aws import caller
from starcluster.errors import Unreachable

AWS = "https://ec2.us-east-1.amazonaws.com"


class Service:
    """Answers with ``text``, or not at all if it is None."""

    text: str | None = "8.8.4.4\n"


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Service]]:
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if Service.text is None:
                ended.wait()
                return
            self.send_response(200)
            self.end_headers()
            self.wfile.write(Service.text.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(caller, "CHECK_IP", f"http://127.0.0.1:{server.server_address[1]}")
    monkeypatch.setattr(caller, "TIMEOUT_S", 300)
    for name in ("http_proxy", "https_proxy", "all_proxy"):  # nothing listens there
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setattr(Service, "text", Service.text)
    yield Service
    ended.set()
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("text", ["8.8.4.4\n", "2600:1f18::1"])
def test_the_public_address_comes_from_aws_past_any_proxy(
    service: type[Service], text: str
) -> None:
    service.text = text
    assert caller.address_of_caller(AWS) == text.strip()


@pytest.mark.parametrize("text", ["<html>Log in to the hotel</html>", "", "192.168.1.4", None])
def test_no_answer_or_a_wrong_one_is_refused(
    service: type[Service], text: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.text = text
    if text is None:
        monkeypatch.setattr(caller, "TIMEOUT_S", 0.5)
    with pytest.raises(Unreachable, match="ssh_from"):
        caller.address_of_caller(AWS)


def test_nodes_of_a_private_network_see_the_address_of_the_route() -> None:
    assert caller.address_of_caller("http://127.0.0.1:5000") == "127.0.0.1"
    assert caller.address_of_caller(AWS, "127.0.0.9") == "127.0.0.1"
    with pytest.raises(Unreachable, match="--ssh-from"):
        caller.address_of_caller("http://no-such-host.invalid")
