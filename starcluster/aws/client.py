"""All calls of boto3: retries, timeouts and translated errors."""

from __future__ import annotations

import functools
import logging
import shlex
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from starcluster.aws.endpoint import endpoint, proxies
from starcluster.aws.error_table import DRY_RUN_PASSED, translate, wrong_parameters
from starcluster.config.sections import DEFAULT_REGION, AwsSettings
from starcluster.errors import (
    AwsError,
    CredentialsError,
    MissingExtra,
    StarClusterError,
    Unreachable,
    did_you_mean,
)
from starmint import extra_command

if TYPE_CHECKING:
    import boto3
    from botocore.loaders import Loader

CONNECT_TIMEOUT_S = 10
READ_TIMEOUT_S = 60
ATTEMPTS = 8
# Size of the connection pool of a client; as many requests can run concurrently.
CONNECTIONS = 32
_READS = ("Describe", "Get", "List")
_LOG_IN = (
    "Set them in [aws info] of the config, set AWS_PROFILE or AWS_ACCESS_KEY_ID, "
    "or log in: aws configure sso"
)


def open_session(settings: AwsSettings) -> boto3.Session:
    """Return a session with the credentials of ``settings``, otherwise those that boto3 finds."""
    # At level DEBUG botocore logs whole requests, and user data contains a private key.
    logging.getLogger("botocore").setLevel(logging.INFO)
    try:
        import boto3
        import botocore.session
        from botocore.exceptions import BotoCoreError
    except ImportError as error:
        fix = f"Install it: {extra_command('aws')}"
        raise MissingExtra(f"boto3 is not installed: {error}", fix) from error
    try:
        core = botocore.session.Session(profile=settings.aws_profile or None)
        loader = _loader(core.get_config_variable("data_path"))
        core.register_component("data_loader", loader)
        session = boto3.Session(
            aws_access_key_id=settings.aws_access_key_id or None,
            aws_secret_access_key=settings.aws_secret_access_key or None,
            aws_session_token=settings.aws_session_token or None,
            botocore_session=core,
        )
    except BotoCoreError as error:
        raise CredentialsError(f"cannot open an AWS session: {error}", _LOG_IN) from error
    loader.search_paths[:] = dict.fromkeys(loader.search_paths)  # each session adds boto3's
    return session


@functools.cache
def _loader(data_path: str | None) -> Loader:
    """Return the reader of the descriptions of services, which sessions share.

    Reading EC2's takes a quarter of a second.
    """
    from botocore.loaders import create_loader

    return create_loader(data_path)


class AwsClient:
    """Calls of the AWS API in one region; threads can share a client.

    botocore retries in its adaptive mode. A call without a response raises Unreachable.

    Attributes:
        changes: Names of the requests so far that change something, also if AWS refused them.
    """

    def __init__(self, settings: AwsSettings, region: str = "") -> None:
        if region and region != settings.aws_region_name:
            # The host in the config belongs to the region in the config.
            settings = replace(settings, aws_region_host="", aws_port=None)
        self._settings = settings
        self._session = open_session(settings)
        found = region or settings.aws_region_name or self._session.region_name
        self.region: str = found or DEFAULT_REGION
        self.changes: list[str] = []
        self._clients: dict[tuple[str, str], Any] = {}
        self._lock = threading.Lock()

    def open_again(self) -> None:
        """Reread the credentials; otherwise a client reads the file only once."""
        session = open_session(self._settings)
        with self._lock:
            self._session = session
            self._clients.clear()

    def call(self, service: str, operation: str, **arguments: Any) -> dict[str, Any]:
        """Return the response to one request; ``operation`` is its name, e.g. ``RunInstances``."""
        client = self._client(service)
        if not operation.startswith(_READS) and not arguments.get("DryRun"):
            self.changes.append(operation)
        return dict(self._do(client, operation, lambda: _method(client, operation)(**arguments)))

    def pages(self, service: str, operation: str, key: str, **arguments: Any) -> Iterator[Any]:
        """Yield the items of ``key`` in all pages of a response."""
        client = self._client(service)
        pages = iter(client.get_paginator(_snake(operation)).paginate(**arguments))
        while True:
            page = self._do(client, operation, lambda: next(pages, None))
            if page is None:
                return
            yield from page.get(key, ())

    def check_allowed(self, service: str, operation: str, **arguments: Any) -> None:
        """Check with a dry run that AWS would allow a request; raise what the request would."""
        try:
            self.call(service, operation, DryRun=True, **arguments)
        except AwsError as error:
            if error.code != DRY_RUN_PASSED:
                raise

    def wait(
        self, service: str, waiter: str, *, delay_s: float, limit_s: float, **arguments: Any
    ) -> None:
        """Wait with a waiter of botocore. Raises Unreachable after ``limit_s``."""
        client = self._client(service)
        attempts = {"Delay": delay_s, "MaxAttempts": max(1, round(limit_s / delay_s))}
        call = client.get_waiter(waiter).wait
        self._do(client, waiter, lambda: call(WaiterConfig=attempts, **arguments))

    def address(self) -> str:
        """Return the address of EC2 for this client."""
        return str(self._client("ec2").meta.endpoint_url)

    def regions_known(self) -> list[str]:
        """Return the regions that boto3 knows, without sending a request."""
        return [str(name) for name in self._session.get_available_regions("ec2")]

    def _client(self, service: str, region: str = "") -> Any:
        where = (service, region or _home_of(service, self.region))
        with self._lock:
            if where not in self._clients:
                self._clients[where] = self._open(*where)
            return self._clients[where]

    def _open(self, service: str, region: str) -> Any:
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError

        settings = self._settings
        config = Config(
            region_name=region,
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=READ_TIMEOUT_S,
            retries={"mode": "adaptive", "total_max_attempts": ATTEMPTS},
            max_pool_connections=CONNECTIONS,
            proxies=proxies(settings),
            user_agent_extra="starmint",
        )
        try:
            client = self._session.client(
                service,
                config=config,
                endpoint_url=endpoint(settings, service) or None,
                use_ssl=settings.aws_is_secure,
                verify=None if settings.aws_validate_certs else False,
            )
            client.meta.events.register_first("needs-retry.ec2", _no_retry_without_capacity)
            return client
        except (BotoCoreError, ValueError) as error:
            raise AwsError(f"cannot connect to {service} in {region}: {error}") from error

    def _do(self, client: Any, operation: str, call: Any) -> Any:
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        try:
            return call()
        except ResponseParserError as error:
            address = client.meta.endpoint_url
            what = f"the response of {address} is not from AWS ({operation})"
            fix = "A proxy or a login page of the network may have answered. Check aws_proxy."
            raise Unreachable(what, fix, operation=operation) from error
        except ClientError as error:
            details = error.response.get("Error", {})
            raise translate(
                details.get("Code", ""),
                details.get("Message", ""),
                operation=operation,
                region=client.meta.region_name,
            ) from error
        except BotoCoreError as error:
            raise self._from_botocore(error, operation, client.meta.endpoint_url) from error

    def _from_botocore(self, error: Exception, operation: str, address: str) -> StarClusterError:
        from botocore import exceptions as botocore_errors

        if isinstance(error, botocore_errors.ParamValidationError):
            return wrong_parameters(str(error), operation=operation)
        missing = (botocore_errors.NoCredentialsError, botocore_errors.PartialCredentialsError)
        if isinstance(error, (*missing, botocore_errors.CredentialRetrievalError)):
            return CredentialsError(f"no AWS credentials: {error}", _LOG_IN, operation=operation)
        expired = (
            botocore_errors.SSOError,
            botocore_errors.TokenRetrievalError,
            botocore_errors.UnauthorizedSSOTokenError,
        )
        if isinstance(error, expired):
            profile = self._session.profile_name
            named = "" if profile == "default" else f" --profile {shlex.quote(profile)}"
            fix = f"Log in again: aws sso login{named}"
            return CredentialsError(f"the AWS login has expired: {error}", fix, operation=operation)
        if isinstance(error, botocore_errors.WaiterError):
            return Unreachable(
                f"timeout while waiting for {operation}: {error}", operation=operation
            )
        if isinstance(error, (botocore_errors.HTTPClientError, botocore_errors.ConnectionError)):
            hint = did_you_mean(self.region, self.regions_known())
            known = self.region in self.regions_known()
            fix = "Check the network, the proxy (aws_proxy) and the region."
            fix = fix if known or not hint else f"The region is '{self.region}'. {hint}"
            what = f"no response from {address}: {error} ({operation})"
            return Unreachable(what, fix, operation=operation)
        return AwsError(f"{operation} failed: {error}", operation=operation)


def _home_of(service: str, region: str) -> str:
    """Return the region to ask for ``service``; only three regions answer for prices."""
    return "us-east-1" if service == "pricing" else region


def _no_retry_without_capacity(response: Any = None, **_: object) -> None:
    """Prevent botocore from retrying when AWS has no capacity.

    AWS reports missing capacity with status 500, which botocore retries. Eight attempts would
    take a minute before the next zone is tried.
    """
    if response is not None:
        http, parsed = response
        if parsed.get("Error", {}).get("Code", "").startswith("Insufficient"):
            http.status_code = 400


def _snake(operation: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in operation).lstrip("_")


def _method(client: Any, operation: str) -> Any:
    return getattr(client, _snake(operation))
