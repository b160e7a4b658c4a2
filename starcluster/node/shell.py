"""One SSH connection to one node; no other module imports paramiko.

The node must present the host key that it was launched with. No other key is ever accepted.
"""

from __future__ import annotations

import contextlib
import importlib
import ipaddress
import logging
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from starcluster.errors import (
    CommandTimeout,
    ConnectionLost,
    HostKeyMismatch,
    MissingExtra,
    SshError,
)
from starcluster.logger import log, redact
from starcluster.node import host_keys
from starcluster.node.commands import Answer, RemoteCommands, without_profile
from starcluster.node.files import OneAtATime, RemoteFiles, Sftp
from starcluster.node.tunnel import RETRY_S, TUNNELS, Forwarding, Tunnel
from starmint import extra_command

if TYPE_CHECKING:
    import paramiko

_KEEPALIVE_S = 10.0
_STEP_S = 0.5
_GRACE_S = 1.0
_CHUNK = 1 << 16
_ANSWER = 3  # times the timeout to connect: a busy node accepts soon, but its sshd answers late
_SESSIONS = 8  # sshd allows 10 per connection, and SFTP uses one


class Shell(RemoteCommands, RemoteFiles):
    """``node.ssh``: commands and files of one node over one connection, opened at first use."""

    def __init__(
        self,
        host: str,
        *,
        port: int = 22,
        user: str,
        key: Path,
        host_key: str,
        timeout_s: float,
        name: str = "",
        tunnel: Forwarding | None = None,
        no_answer: Callable[[], tuple[str, str]] = lambda: ("", ""),
    ) -> None:
        """Prepare; nothing is sent.

        Args:
            host_key: The public host key of the node, as in ``ssh_host_ed25519_key.pub``; several
                separated by commas while it is replaced.
            timeout_s: Timeout to connect, and for a node that stops answering; sshd may take three
                times as long for each answer.
            name: Name of the node in messages. Default: ``host``.
            tunnel: How to reach the node, instead of a direct connection.
            no_answer: Return why nothing answers at ``host`` and the fix, or empty texts.
        """
        self.host, self.port, self.user = host, port, user
        self.key, self.host_key, self.timeout_s = key, host_key, timeout_s
        self.name = name or host
        self._way = tunnel
        self._why_no_answer = no_answer
        self._lock = threading.RLock()
        self._transport: paramiko.Transport | None = None
        self._tunnel: Tunnel | None = None
        self._sftp: Sftp | None = None
        self._sessions = threading.BoundedSemaphore(_SESSIONS)
        self._last_status = 0

    # The connection

    def connect(self, *, wait_s: float = 0.0) -> None:
        """Open the connection unless it is open.

        Args:
            wait_s: Keep retrying for this long while the node boots.

        Raises:
            SshError: No connection in time.
            HostKeyMismatch: The node presented another host key; this is not retried.
        """
        deadline = time.monotonic() + wait_s
        pause = RETRY_S if self._way else _STEP_S
        with self._lock:
            while not self.is_connected:
                try:
                    if self._way:
                        self._way.check()
                    with TUNNELS if self._way else contextlib.nullcontext():
                        self._transport = self._opened()
                except HostKeyMismatch:
                    raise
                except SshError as error:
                    if time.monotonic() + pause > deadline or self._is_final(error):
                        self._explain(error)
                        raise
                    time.sleep(pause)

    def _is_final(self, error: SshError) -> bool:
        return self._way is not None and self._way.is_final(error.what)

    def _explain(self, error: SshError) -> None:
        """Say why nothing answered, if a security group can be the reason."""
        if isinstance(error.__cause__, TimeoutError):
            why, fix = self._why_no_answer()
            if why:
                error.what, error.fix = f"{error.what}; {why}", fix

    @property
    def is_connected(self) -> bool:
        """Whether the connection looks open from this side."""
        return self._transport is not None and self._transport.is_active()

    def close(self) -> None:
        """Close the connection; the next use opens a new one."""
        # Without the lock: another thread holds it as long as it waits for a node that boots.
        self._sftp = None
        transport, self._transport = self._transport, None
        tunnel, self._tunnel = self._tunnel, None
        if transport is not None:
            transport.close()
        if tunnel is not None:
            tunnel.close()

    def switch_user(self, user: str) -> None:
        """Reconnect as another user of the node, who must accept the same key."""
        with self._lock:
            if user != self.user:
                self.close()
                self.user = user
                self.connect()

    @property
    def public_key(self) -> str:
        """The public key, as a line of ``authorized_keys``."""
        return public_half(self.key)

    @property
    def _answer_s(self) -> float:
        return _ANSWER * self.timeout_s

    def _opened(self) -> paramiko.Transport:
        """Return a transport that has authenticated both sides."""
        lib = _paramiko()
        transport: paramiko.Transport | None = None
        tunnel: Tunnel | None = None
        try:
            if self._way:
                self._tunnel = tunnel = Tunnel(self._way)
                connection = tunnel.socket
            else:
                connection = self._dialled()
            transport = lib.Transport(connection)
            transport.daemon = True
            for limit in ("banner_timeout", "handshake_timeout", "auth_timeout", "channel_timeout"):
                setattr(transport, limit, self._answer_s)
            transport.get_security_options().key_types = _algorithms(self.host_key)
            transport.start_client(timeout=self._answer_s)
            if not transport.initial_kex_done:  # paramiko returns without an error
                raise lib.SSHException("sshd did not finish the handshake")
            self._verify(transport)
            transport.auth_publickey(self.user, _private_key(self.key))
            transport.set_keepalive(max(1, int(min(_KEEPALIVE_S, self.timeout_s / 3))))
        except (OSError, EOFError, lib.SSHException) as error:
            if transport is not None:
                transport.close()
            limit_s = self.timeout_s if transport is None else self._answer_s
            raise self._not_connected(error, tunnel, limit_s) from error
        except BaseException:
            if transport is not None:
                transport.close()
            if tunnel is not None:
                tunnel.close()
            raise
        log.debug("%s: connected as %s", self.name, self.user)
        return transport

    def _dialled(self) -> socket.socket:
        connection = socket.create_connection((self.host, self.port), self.timeout_s)
        # Close the connection if data stays unacknowledged; TCP alone waits 15 minutes.
        milliseconds = int(max(self.timeout_s, 1) * 1000)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
        return connection

    def _verify(self, transport: paramiko.Transport) -> None:
        shown = transport.get_remote_server_key()
        if f"{shown.get_name()} {shown.get_base64()}" not in host_keys.split(self.host_key):
            raise self._mismatch(shown.fingerprint)

    def _mismatch(self, shown: str) -> HostKeyMismatch:
        return HostKeyMismatch(
            f"{self.name}: host key verification failed: {self.host} presented another key "
            f"({shown})",
            "Another machine may use this address now. Nothing was sent to it.",
        )

    def _not_connected(self, error: Exception, tunnel: Tunnel | None, limit_s: float) -> SshError:
        lib = _paramiko()
        where = f"{self.name}: {self.host} port {self.port}"
        if isinstance(error, lib.AuthenticationException):
            return SshError(
                f"{where}: authentication failed for user {self.user} with {self.key}",
                "Use the private key of the cluster's key pair: starcluster listkeypairs",
            )
        if isinstance(error, lib.ssh_exception.IncompatiblePeer):
            return self._mismatch("of another type")
        words = str(error) or type(error).__name__
        if self._way and tunnel is not None:
            through = f"{where}: cannot connect through {self._way.through}"
            return SshError(f"{through}: {tunnel.close()} ({words})", self._way.fix)
        if _is_private(self.host):
            words += "; it has no public address (set public_ips, or reach its network by a VPN)"
        return SshError(
            f"{where}: cannot connect by SSH within {limit_s:g} s: {words}",
            "Check that the instance runs and that its security group allows SSH from here.",
        )

    def _connected(self) -> paramiko.Transport:
        with self._lock:
            self.connect()
            return cast("paramiko.Transport", self._transport)

    # One command

    def _run(
        self,
        script: str,
        *,
        stdin: bytes = b"",
        combined: bool = False,
        timeout_s: float,
        show: Callable[[str], object] | None = None,
    ) -> Answer:
        deadline = time.monotonic() + timeout_s
        with self._channel() as channel:
            channel.set_combine_stderr(combined)
            channel.exec_command(script)
            if stdin:
                threading.Thread(target=_send, args=(channel, stdin), daemon=True).start()
            else:
                _end_input(channel)
            out, err = self._collected(channel, script, deadline, timeout_s, show)
            if not channel.status_event.wait(max(deadline - time.monotonic(), 1.0)):
                raise self._late(script, timeout_s)
            status = channel.recv_exit_status()
            if status < 0 and not self.is_connected:
                raise self._lost()
        self._last_status = status
        return Answer(
            status=status, stdout=out.decode(errors="replace"), stderr=err.decode(errors="replace")
        )

    def _collected(
        self,
        channel: paramiko.Channel,
        script: str,
        deadline: float,
        timeout_s: float,
        show: Callable[[str], object] | None,
    ) -> tuple[bytes, bytes]:
        """Return all output and standard error.

        Does not wait for a daemon that the command left running with its output open.
        """
        out, err = bytearray(), bytearray()
        last = time.monotonic()
        waiting = select.poll()
        waiting.register(channel.fileno(), select.POLLIN)
        while True:
            waiting.poll(_STEP_S * 1000)
            ended = channel.closed or channel.eof_received
            while channel.recv_ready():
                new = channel.recv(_CHUNK)
                last = time.monotonic()
                out += new
                if show:
                    show(new.decode(errors="replace"))
            while channel.recv_stderr_ready():
                err += channel.recv_stderr(_CHUNK)
                last = time.monotonic()
            now = time.monotonic()
            if not channel.exit_status_ready():
                last = now  # the last output can arrive after the exit status
            left_behind = now > last + _GRACE_S
            if ended or left_behind:
                return bytes(out), bytes(err)
            if not self.is_connected:
                raise self._lost()
            if now > deadline:
                raise self._late(script, timeout_s)

    def _session(self) -> Any:
        """Open a session; sshd also counts those that are closed and whose end it has not seen."""
        deadline = time.monotonic() + self._answer_s
        while True:
            try:
                return self._connected().open_session(timeout=self._answer_s)
            except _paramiko().ChannelException:  # a refusal; the connection is good
                if time.monotonic() > deadline:
                    raise
                time.sleep(_STEP_S)

    @contextlib.contextmanager
    def _channel(self) -> Iterator[Any]:
        channel = None
        self._sessions.acquire()
        try:
            channel = self._session()
            yield channel
        except (OSError, EOFError, _paramiko().SSHException) as error:
            raise self._lost() from error
        finally:
            if channel is not None:
                channel.close()
            self._sessions.release()

    def _lost(self) -> ConnectionLost:
        self.close()
        return ConnectionLost(
            f"{self.name}: lost the SSH connection to {self.host}",
            "Commands may still run there. Check the instance: starcluster listclusters",
        )

    def _late(self, script: str, timeout_s: float) -> CommandTimeout:
        first = redact(without_profile(script).strip().splitlines()[0])
        return CommandTimeout(
            f"{self.name}: {first}: timeout after {timeout_s:g} s; the command may still run"
        )

    # Files

    @property
    def sftp(self) -> Sftp:
        """The SFTP session over the same connection."""
        with self._lock:
            if self._sftp is None or not self.is_connected:
                try:
                    channel = self._session()
                    channel.settimeout(self._answer_s)
                    channel.invoke_subsystem("sftp")
                    client = _paramiko().SFTPClient(channel)
                    self._sftp = cast("Sftp", OneAtATime(client, threading.RLock()))
                except (OSError, EOFError, _paramiko().SSHException) as error:
                    raise self._lost() from error
            return self._sftp


def _end_input(channel: Any) -> None:
    """Send the end of the input, but never behind a close: sshd then ends the whole connection.

    ``Channel.shutdown_write`` sends it without the lock, so that an answer to sshd's close, when a
    command ends at once, can come in between.
    """
    with channel.lock:
        message = None if channel.closed else channel._send_eof()
        if message is not None:
            channel.transport._send_user_message(message)


def _algorithms(keys: str) -> tuple[str, ...]:
    """Return the signature algorithms of host keys."""
    found: list[str] = []
    for kind in (key.split()[0] for key in host_keys.split(keys)):
        found += ("rsa-sha2-512", "rsa-sha2-256") if kind == "ssh-rsa" else (kind,)
    return tuple(dict.fromkeys(found))


def _is_private(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return False


def public_half(file: Path) -> str:
    """Return the public key of a private key as in ``authorized_keys``. Raises SshError."""
    key = _private_key(file)
    return f"{key.get_name()} {key.get_base64()}"


def _private_key(file: Path) -> paramiko.PKey:
    try:
        return cast("paramiko.PKey", _paramiko().PKey.from_path(file))
    except Exception as error:
        # paramiko and cryptography raise a dozen unrelated classes for a bad key file.
        raise SshError(
            f"cannot read {file} as a private key without a passphrase: {error}",
            "Set another key_location in section [key NAME].",
        ) from error


def _send(channel: paramiko.Channel, data: bytes) -> None:
    with contextlib.suppress(OSError, EOFError):  # a program may exit before it reads all
        channel.sendall(data)
        _end_input(channel)


def _paramiko() -> Any:
    # Without a handler, Python prints a traceback for each attempt on a node that boots.
    logging.getLogger("paramiko").addHandler(logging.NullHandler())
    try:
        return importlib.import_module("paramiko")
    except ImportError as error:
        raise MissingExtra(
            "SSH requires the package paramiko", f"Install it: {extra_command('aws')}"
        ) from error
