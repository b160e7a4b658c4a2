"""The metadata service of EC2: tokens, user data and the credentials of a role, over IPv4 and 6."""

from __future__ import annotations

import http.server
import json
import secrets
import socket
import threading
from typing import TYPE_CHECKING, ClassVar

from tests.testbed.roles import REGION, credentials, role_of

if TYPE_CHECKING:
    from tests.testbed.machines import Machines

ADDRESSES = ("169.254.169.254", "fd00:ec2::254")
ROLE_SECRET = "secret-of-the-role-of-the-instance"  # noqa: S105 - of no account
_CREDENTIALS = "/latest/meta-data/iam/security-credentials/"


def serve_metadata(machines: Machines) -> None:
    """Answer the instances in the background."""

    class Handler(_Handler):
        instances = machines

    for address in ADDRESSES:
        server = _server(address, Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()


def _server(address: str, handler: type[_Handler]) -> http.server.ThreadingHTTPServer:
    class Server(http.server.ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in address else socket.AF_INET

    return Server((address, 80), handler)


class _Handler(http.server.BaseHTTPRequestHandler):
    instances: Machines
    tokens: ClassVar[set[str]] = set()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def do_PUT(self) -> None:
        token = secrets.token_hex(8)
        self.tokens.add(token)
        self._answer(200 if self.path == "/latest/api/token" else 404, token.encode())

    def do_GET(self) -> None:
        facts = self.instances.at(self.client_address[0])
        role = role_of(facts.id, REGION) if facts else ""
        if self.headers.get("X-aws-ec2-metadata-token") not in self.tokens:
            self._answer(401, b"")
        elif facts and role and self.path == f"{_CREDENTIALS}{role}":
            self._answer(200, json.dumps(credentials(facts.id)).encode())
        elif role and self.path == _CREDENTIALS:
            self._answer(200, role.encode())
        elif facts and self.path == "/latest/user-data":
            self._answer(200, facts.user_data)
        elif facts and self.path == f"{_CREDENTIALS}role":
            self._answer(200, ROLE_SECRET.encode())
        elif facts and self.path == _CREDENTIALS:
            self._answer(200, b"role")
        else:
            self._answer(404, b"")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
