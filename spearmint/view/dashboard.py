"""Serve optuna-dashboard and the report during a search, by default on loopback only."""

from __future__ import annotations

import importlib.util
import os
import secrets
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType

from rich.console import Console

from spearmint.errors import InputError
from spearmint.html_report.libraries import LIBRARIES
from spearmint.view.live_report import PATH
from spearmint.view.web_key import VARIABLE, with_key
from starmint import extra_command

_SERVER = (sys.executable, "-P", "-m", "spearmint.view.dashboard_server")
_STOP_S = 5.0


class WebStatus:
    """Serves the dashboard and the report in a separate process until the context ends.

    Attributes:
        key: The secret that requests need; see :mod:`spearmint.view.web_key`.
    """

    def __init__(
        self, enabled: bool, host: str, port: int, *, config: Path, url: str, console: Console
    ) -> None:
        self.key = secrets.token_urlsafe(16)
        self._enabled, self._host, self._port = enabled, host, port
        self._config, self._url, self._console = config, url, console
        self._server: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> WebStatus:
        """Start the server and print its addresses.

        Raises:
            InputError: The extra ``web`` is not installed, or the address cannot be used.
        """
        if not self._enabled:
            return self
        if importlib.util.find_spec("optuna_dashboard") is None:
            raise InputError(
                "--web-status requires optuna-dashboard", f"Install it: {extra_command('web')}"
            )
        port = _usable_port(self._host, self._port)
        self._server = subprocess.Popen(
            [*_SERVER, self._host, str(port), str(self._config)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "SPEARMINT_STORAGE": self._url, VARIABLE: self.key},
            start_new_session=True,
        )
        address = f"http://{self._host}:{port}"
        paths = {"Dashboard": "/"}
        if all(map(importlib.util.find_spec, LIBRARIES)):
            paths["Report"] = PATH
        for what, path in paths.items():
            line = f"{what}: {with_key(address + path, self.key)}"
            self._console.print(line, markup=False, soft_wrap=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the server."""
        if self._server is not None:
            self._server.terminate()
            try:
                self._server.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._server.kill()


def _usable_port(host: str, port: int) -> int:
    """Return ``port``, or a free one for 0. Raises InputError if it cannot be used."""
    try:
        with socket.create_server((host, port)) as probe:
            return int(probe.getsockname()[1])
    except OSError as error:
        raise InputError(
            f"cannot serve the dashboard at {host}:{port}: {error.strerror}",
            "Choose another --host or --port; --port=0 uses a free port.",
        ) from None
