"""A server in front of moto: it answers what moto does not have, and can close regions."""

from __future__ import annotations

import http.client
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_REGION = re.compile(r"Credential=[^/]+/\d+/([a-z0-9-]+)/")

_REFUSED = (
    b"<Response><Errors><Error><Code>AuthFailure</Code><Message>not validated</Message></Error>"
    b"</Errors><RequestID>1</RequestID></Response>"
)


@dataclass
class Front:
    """The answers; a test sets them.

    Attributes:
        hourly: Dollars per hour by instance type.
        monthly: Dollars per GiB and month by volume type.
        quota: vCPUs of every quota.
        parameters: SSM parameters by name.
        closed: Regions that refuse the credentials.
    """

    moto: str
    hourly: dict[str, float] = field(default_factory=dict)
    monthly: dict[str, float] = field(default_factory=dict)
    quota: float = 64.0
    parameters: dict[str, str] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    address: str = ""

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


@contextmanager
def in_front_of(moto: str) -> Iterator[Front]:
    """Serve in front of the server ``moto`` while the context is open."""
    front = Front(moto)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            region = _REGION.search(self.headers.get("Authorization", ""))
            if region and region[1] in front.closed:
                self._reply(401, "text/xml", _REFUSED)
                return
            action = self.headers.get("X-Amz-Target", "").rpartition(".")[2]
            told = front.answer(action, json.loads(body)) if action else None
            if told is None:
                self._reply(*_asked(front.moto, self.path, dict(self.headers), body))
            else:
                self._reply(200, "application/x-amz-json-1.1", json.dumps(told).encode())

        def _reply(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
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
