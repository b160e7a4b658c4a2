"""A server in front of moto: it answers what moto does not have, and can close regions."""

from __future__ import annotations

import http.client
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

_REGION = re.compile(r"Credential=[^/]+/\d+/([a-z0-9-]+)/")


def _refusal(code: str, message: str) -> bytes:
    error = f"<Error><Code>{escape(code)}</Code><Message>{escape(message)}</Message></Error>"
    return (f"<Response><Errors>{error}</Errors><RequestID>1</RequestID></Response>").encode()


@dataclass
class Front:
    """The answers; a test sets them.

    Attributes:
        hourly: Dollars per hour by instance type.
        monthly: Dollars per GiB and month by volume type.
        quota: vCPUs of every quota.
        parameters: SSM parameters by name.
        closed: Regions that refuse the credentials.
        refusals: Codes and messages of the errors of the next requests, by action of EC2.
        answers: Responses of EC2 by action, as the XML inside of the response, or a function that
            returns it for the fields of the form.
        denied: Actions of services in JSON, such as GetProducts, that AWS refuses.
        paths: Responses of services that are asked by path, as JSON.
        asked: Every request of EC2 and IAM, as the fields of its form.
    """

    moto: str
    hourly: dict[str, float] = field(default_factory=dict)
    monthly: dict[str, float] = field(default_factory=dict)
    quota: float = 64.0
    parameters: dict[str, str] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    refusals: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    denied: set[str] = field(default_factory=set)
    answers: dict[str, str | Callable[[dict[str, str]], str]] = field(
        default_factory=lambda: {"DescribePlacementGroups": "<placementGroupSet/>"}
    )
    paths: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[dict[str, str]] = field(default_factory=list)
    address: str = ""

    def sent(self, action: str) -> list[dict[str, str]]:
        """Return the requests of an action."""
        return [form for form in self.asked if form["Action"] == action]

    def answer(self, action: str, asked: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the response to a request that moto does not answer as AWS does."""
        if action == "GetProducts":
            return {"FormatVersion": "aws_v1", "PriceList": self._products(asked)}
        if action == "GetServiceQuota":
            return {"Quota": {"Value": self.quota}}
        if action == "GetParameters":
            known = {name: self.parameters.get(name) for name in asked["Names"]}
            rows = [{"Name": name, "Value": value} for name, value in known.items() if value]
            return {
                "Parameters": rows,
                "InvalidParameters": [name for name, value in known.items() if not value],
            }
        return None

    def _products(self, asked: Mapping[str, Any]) -> list[str]:
        fields = {each["Field"]: each["Value"] for each in asked["Filters"]}
        if "volumeApiName" in fields:
            unit, price = "GB-Mo", self.monthly.get(fields["volumeApiName"])
        else:
            unit, price = "Hrs", self.hourly.get(fields["instanceType"])
        dimension = {"unit": unit, "pricePerUnit": {"USD": str(price)}}
        product = {"terms": {"OnDemand": {"term": {"priceDimensions": {"rate": dimension}}}}}
        return [json.dumps(product)] if price else []


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, front: Front) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.front = front


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        front = self.server.front
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        region = _REGION.search(self.headers.get("Authorization", ""))
        if region and region[1] in front.closed:
            self._reply(401, "text/xml", _refusal("AuthFailure", "not validated"))
            return
        action = self.headers.get("X-Amz-Target", "").rpartition(".")[2]
        if action in front.denied:
            told = {"__type": "AccessDeniedException", "message": f"not allowed: {action}"}
            self._reply(400, "application/x-amz-json-1.1", json.dumps(told).encode())
            return
        told = front.paths.get(self.path)
        if not action and told is None and self._of_form(front, body):
            return
        if action:
            told = front.answer(action, json.loads(body))
        if told is None:
            self._reply(*_asked(front.moto, self.path, dict(self.headers), body))
        else:
            self._reply(200, "application/x-amz-json-1.1", json.dumps(told).encode())

    def _of_form(self, front: Front, body: bytes) -> bool:
        form = dict(parse_qsl(body.decode()))
        name = form.get("Action", "")
        if name:
            front.asked.append(form)
        if left := front.refusals.get(name):
            self._reply(400, "text/xml", _refusal(*left.pop(0)))
        elif name in front.answers:
            answer = front.answers[name]
            inside = answer if isinstance(answer, str) else answer(form)
            text = f"<{name}Response>{inside}</{name}Response>"
            self._reply(200, "text/xml", text.encode())
        else:
            return False
        return True

    def _reply(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def in_front_of(moto: str) -> Iterator[Front]:
    """Serve in front of the server ``moto`` while the context is open."""
    front = Front(moto)
    server = _Server(front)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    front.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield front
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _asked(moto: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection(moto.removeprefix("http://"), timeout=60)
    try:
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.getheader("Content-Type", ""), answer.read()
    finally:
        connection.close()
