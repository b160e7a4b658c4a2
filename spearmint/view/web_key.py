"""Answer only requests with the key of a server: other users of the host can reach its port too."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, urlencode

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

VARIABLE = "SPEARMINT_WEB_KEY"
"""The environment variable that passes the key: unlike arguments, other users cannot read it."""

_PARAMETER = "key"
_REFUSAL = "Open the address that spearmint printed; it ends in ?key=...\n"


def with_key(address: str, key: str) -> str:
    """Return the address that a browser opens first."""
    return f"{address}?{urlencode({_PARAMETER: key})}"


@dataclass(frozen=True, kw_only=True)
class WebKey:
    """A WSGI application that asks for a key, in front of another application.

    ``?key=KEY`` sets a cookie and redirects to the same path without the key. The cookie is not
    sent with changes that pages of other sites request (SameSite, RFC 6265bis).

    Attributes:
        key: The secret.
        application: The application for requests with the key.
    """

    key: str
    application: WSGIApplication

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request, as PEP 3333 describes."""
        fields = parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        given = [value for name, value in fields if name == _PARAMETER]
        if given and self._is_key(given[-1]):
            return self._redirect(environ, start_response, fields)
        if self._is_key(_cookie(environ, _name(environ))):
            return self.application(environ, start_response)
        return _answer(start_response, HTTPStatus.FORBIDDEN, _REFUSAL)

    def _redirect(
        self,
        environ: WSGIEnvironment,
        start_response: StartResponse,
        fields: list[tuple[str, str]],
    ) -> Iterable[bytes]:
        path = "/" + environ.get("PATH_INFO", "").lstrip("/")  # bytes as Latin-1, PEP 3333
        rest = urlencode([field for field in fields if field[0] != _PARAMETER])
        cookie = f"{_name(environ)}={self.key}; Path=/; HttpOnly; SameSite=Lax"
        target = quote(path, encoding="latin-1") + (f"?{rest}" if rest else "")
        headers = [("Location", target), ("Set-Cookie", cookie)]
        return _answer(start_response, HTTPStatus.SEE_OTHER, "", headers)

    def _is_key(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(errors="replace"), self.key.encode())


def _name(environ: WSGIEnvironment) -> str:
    """Return the name of the cookie: servers at other ports of a host have the same cookies."""
    return f"spearmint-{environ.get('SERVER_PORT', '')}"


def _cookie(environ: WSGIEnvironment, name: str) -> str:
    """Return a cookie; others, of any server of the host, can have forms that parsers refuse."""
    pairs = (part.strip().partition("=") for part in environ.get("HTTP_COOKIE", "").split(";"))
    return next((value for found, _, value in pairs if found == name), "")


def _answer(
    start_response: StartResponse,
    status: HTTPStatus,
    text: str,
    headers: Iterable[tuple[str, str]] = (),
) -> Iterable[bytes]:
    content = text.encode()
    always = [
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Content-Length", str(len(content))),
        ("Cache-Control", "no-store"),
        ("Referrer-Policy", "no-referrer"),
    ]
    start_response(f"{status.value} {status.phrase}", [*always, *headers])
    return [content]
