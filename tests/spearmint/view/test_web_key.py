"""Only requests with the key reach the dashboard: other users of the host can open its port."""

from __future__ import annotations

from typing import Any
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

import pytest

from spearmint.view.web_key import WebKey, with_key

KEY = "a-secret_key"


def application(environ: Any, start_response: Any) -> list[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}".encode()]


def ask(path: str, query: str = "", **more: str) -> tuple[str, dict[str, str], bytes]:
    environ: dict[str, Any] = {"SCRIPT_NAME": "", "PATH_INFO": path, "QUERY_STRING": query}
    environ |= {"SERVER_PORT": "8080", **more}
    setup_testing_defaults(environ)
    started: list[Any] = []

    def start(status: str, headers: Any, error: Any = None) -> Any:
        started.append((status, dict(headers)))

    answer = validator(WebKey(key=KEY, application=application))(environ, start)
    text = b"".join(answer)
    answer.close()  # type: ignore[attr-defined]
    return (*started[0], text)


@pytest.mark.parametrize("cookie", ["", "spearmint-8080=", "spearmint-9=" + KEY, "=;,\x01", KEY])
@pytest.mark.parametrize("query", ["", "key=", "key=wrong", "key=%ff", "key=a-secret_key&key="])
@pytest.mark.parametrize("method", ["GET", "DELETE", "POST"])
def test_a_request_without_the_key_is_refused(method: str, query: str, cookie: str) -> None:
    status, headers, text = ask("/api/studies/1", query, REQUEST_METHOD=method, HTTP_COOKIE=cookie)
    assert status == "403 Forbidden"
    assert b"?key=" in text
    assert "Set-Cookie" not in headers


def test_the_address_with_the_key_sets_a_cookie_that_opens_all_paths() -> None:
    address = with_key("http://127.0.0.1:8080/report", KEY)
    status, headers, _ = ask("/report", address.partition("?")[2] + "&sort=x%20y")
    assert (status, headers["Location"]) == ("303 See Other", "/report?sort=x+y")
    cookie, *flags = headers["Set-Cookie"].split("; ")
    assert set(flags) == {"Path=/", "HttpOnly", "SameSite=Lax"}
    assert ask("/", HTTP_COOKIE=f"theirs=1; {cookie}")[2] == b"GET /"
    deleted = ask("/api/studies/1", HTTP_COOKIE=cookie, REQUEST_METHOD="DELETE")
    assert deleted[2] == b"DELETE /api/studies/1"


@pytest.mark.parametrize("theirs", ['seen={"a": 1}', "x=a b", "x[y]=1", "flag", "n=\xe9", "="])
def test_cookies_of_other_servers_of_the_host_do_not_hide_the_key(theirs: str) -> None:
    assert ask("/", HTTP_COOKIE=f"{theirs}; spearmint-8080={KEY}; {theirs}")[0] == "200 OK"


@pytest.mark.parametrize(
    ("path", "location"),
    [("//evil.example/", "/evil.example/"), ("/gr\xc3\xb6", "/gr%C3%B6"), ("/a\r\nb", "/a%0D%0Ab")],
)
def test_the_redirect_stays_on_the_server(path: str, location: str) -> None:
    assert ask(path, f"key={KEY}")[1]["Location"] == location
