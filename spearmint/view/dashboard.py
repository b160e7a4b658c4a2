"""Serve optuna-dashboard during a search, by default on loopback only."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
from types import TracebackType

from rich.console import Console

from spearmint.errors import InputError

_STOP_S = 5.0


class WebStatus:
    """Serves the dashboard in a separate process until the context ends."""

    def __init__(self, enabled: bool, host: str, port: int, url: str, console: Console) -> None:
        self._enabled, self._host, self._port = enabled, host, port
        self._url, self._console = url, console
        self._server: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> WebStatus:
        """Start the server and print its address.

        Raises:
            InputError: The extra ``web`` is not installed, or the address cannot be used.
        """
        if not self._enabled:
            return self
        if importlib.util.find_spec("optuna_dashboard") is None:
            raise InputError(
                "--web-status requires optuna-dashboard", "Install it: pip install 'starmint[web]'"
            )
        port = _usable_port(self._host, self._port)
        self._server = subprocess.Popen(
            [sys.executable, "-P", "-m", "spearmint.view.dashboard_server", self._host, str(port)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "SPEARMINT_STORAGE": self._url},
            start_new_session=True,
        )
        self._console.print(f"Dashboard: http://{self._host}:{port}/", markup=False)
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
