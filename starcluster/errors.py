"""Errors of the starcluster package.

StarClusterError            exit code 1
├── InputError              exit code 2: the command line, or a call of the plugin API
├── ConfigError             exit code 2: the config file, with every problem in it
├── MissingExtra            an optional package is not installed
├── AwsError                AWS refused or did not answer; has AWS's own code
│   ├── CapacityError       none of this type in this zone now: another zone or type may do
│   ├── QuotaError          the account's quota is too low
│   ├── PermissionDenied    the credentials may not do this
│   ├── CredentialsError    no credentials, or AWS does not know them
│   ├── NotFound            no such instance, image, volume, key, group ...
│   ├── AlreadyThere        one of this name exists, or it is in use
│   ├── Throttled           too many requests, also after retries
│   └── Unreachable         no answer: the state of every resource is unknown
├── SshError                no SSH connection, or it broke
│   ├── HostKeyMismatch     the node showed another key than the one handed to it
│   └── RemoteCommandFailed a command on a node exited other than 0
├── NodeError               one node cannot be used; names it
├── SetupError              setting the cluster up failed on some nodes
├── PluginError             a plugin cannot be loaded, or failed
└── ClusterError            a cluster does not exist, exists already, or is in the wrong state
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence


class StarClusterError(Exception):
    """What happened and what to do next, for people; base of all errors here."""

    exit_code = 1

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.what}\n{self.fix}" if self.fix else self.what

    def __reduce__(self) -> tuple[object, ...]:
        # As it is, whatever its constructor takes: it may come from a worker process.
        return type(self).__new__, (type(self), *self.args), vars(self)


class InputError(StarClusterError):
    """The command line or a call is wrong; nothing was sent to AWS."""

    exit_code = 2


class ConfigError(StarClusterError):
    """The config file is wrong; ``problems`` has all that was found, each with file and line."""

    exit_code = 2

    def __init__(self, what: str, fix: str = "", problems: Sequence[str] = ()) -> None:
        super().__init__("\n".join([what, *(f"  - {problem}" for problem in problems)]), fix)
        self.problems = tuple(problems)


class MissingExtra(StarClusterError):
    """An optional package is not installed; the fix names the extra."""


class AwsError(StarClusterError):
    """AWS refused a request.

    Attributes:
        code: AWS's own, such as ``VcpuLimitExceeded``; empty where none came.
        operation: AWS's name of the request, such as ``RunInstances``.
    """

    def __init__(self, what: str, fix: str = "", *, code: str = "", operation: str = "") -> None:
        super().__init__(what, fix)
        self.code = code
        self.operation = operation


class CapacityError(AwsError):
    """AWS has none of this instance type in this zone now."""


class QuotaError(AwsError):
    """The account's quota does not allow it."""


class PermissionDenied(AwsError):
    """The credentials are known but may not do this."""


class CredentialsError(AwsError):
    """There are no credentials, or AWS does not accept them."""


class NotFound(AwsError):
    """AWS knows no resource of this name or id."""


class AlreadyThere(AwsError):
    """A resource of this name exists already, or is in use."""


class Throttled(AwsError):
    """Too many requests, also after botocore's retries."""


class Unreachable(AwsError):
    """AWS did not answer in time; nothing is known of any resource."""


class SshError(StarClusterError):
    """A node could not be reached over SSH, or the connection broke."""


class HostKeyMismatch(SshError):
    """A node showed another host key than it was given."""


class RemoteCommandFailed(SshError):
    """A command on a node failed.

    Attributes:
        exit_status: Of the command; None where a signal or the connection ended it.
        output: Lines it had written.
    """

    def __init__(
        self,
        what: str,
        fix: str = "",
        *,
        exit_status: int | None = None,
        output: Sequence[str] = (),
    ) -> None:
        super().__init__(what, fix)
        self.exit_status = exit_status
        self.output = tuple(output)


class NodeError(StarClusterError):
    """One node cannot be used; ``alias`` names it."""

    def __init__(self, what: str, fix: str = "", *, alias: str = "") -> None:
        super().__init__(what, fix)
        self.alias = alias


class SetupError(StarClusterError):
    """Setting the cluster up failed on some nodes; the others can be used.

    Attributes:
        failed: What went wrong, by alias; empty where it is not the matter of single nodes.
    """

    def __init__(
        self, what: str, fix: str = "", *, failed: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(what, fix)
        self.failed = dict(failed or {})


class PluginError(StarClusterError):
    """A plugin cannot be loaded, or failed."""


class ClusterError(StarClusterError):
    """A cluster does not exist, exists already, or is in the wrong state."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``Did you mean 'x'?``, or an empty text where nothing is near."""
    by_lower = {word.lower(): word for word in known}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f"Did you mean '{by_lower[near[0]]}'?" if near else ""
