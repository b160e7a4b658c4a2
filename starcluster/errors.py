"""Errors of the starcluster package.

StarClusterError            exit code 1
├── InputError              exit code 2: invalid command line, or invalid call of the plugin API
├── ConfigError             exit code 2: invalid config file; lists every problem in it
├── MissingExtra            an optional package is not installed
├── AwsError                AWS refused or did not respond; has the error code of AWS
│   ├── CapacityError       AWS has no capacity for this type in this zone; another can have it
│   ├── QuotaError          the quota of the account is too low
│   ├── PermissionDenied    the credentials do not have the permission
│   ├── CredentialsError    no credentials, or AWS does not accept them
│   ├── NotFound            no such instance, image, volume, key, group ...
│   ├── AlreadyThere        the resource already exists, or it is in use
│   ├── Throttled           too many requests, even after retries
│   └── Unreachable         no response: the state of every resource is unknown
├── SshError                cannot connect by SSH
│   ├── ConnectionLost      an open SSH connection was lost
│   ├── CommandTimeout      a command on a node did not finish in time
│   ├── HostKeyMismatch     the node has another host key than it was given
│   └── RemoteCommandFailed a command on a node failed
├── NodeError               one node cannot be used; names the node
├── SetupError              the setup of the cluster failed on some nodes
├── PluginError             a plugin cannot be loaded, or failed
└── ClusterError            a cluster does not exist, already exists, or is in the wrong state
    ├── NoInstances         only the security group of a cluster is left
    ├── NotTaken            another command changes or has changed the cluster; nothing was done
    └── Interrupted         exit code 128 + signal: Ctrl-C, SIGTERM or SIGHUP; names what still runs
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence


class StarClusterError(Exception):
    """What happened and how to fix it; base of all errors of this package."""

    exit_code = 1

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.what}\n{self.fix}" if self.fix else self.what

    @property
    def msg(self) -> str:
        """The whole message; plugins for the original read this name."""
        return str(self)

    def explain(self) -> str:
        """Return the message with the name of the class, as plugins for the original print it."""
        return f"{type(self).__name__}: {self}"

    def __reduce__(self) -> tuple[object, ...]:
        # Skip the constructor, because subclasses have other arguments.
        return type(self).__new__, (type(self), *self.args), vars(self)


class InputError(StarClusterError):
    """The command line or a call is invalid; nothing was sent to AWS."""

    exit_code = 2


class ConfigError(StarClusterError):
    """The config file is invalid; ``problems`` lists all problems with file and line."""

    exit_code = 2

    def __init__(self, what: str, fix: str = "", problems: Sequence[str] = ()) -> None:
        super().__init__("\n".join([what, *(f"  - {problem}" for problem in problems)]), fix)
        self.problems = tuple(problems)


class MissingExtra(StarClusterError):
    """An optional package is not installed; the fix says how to install it."""


class AwsError(StarClusterError):
    """AWS refused a request.

    Attributes:
        code: Error code of AWS, such as ``VcpuLimitExceeded``; empty without one.
        operation: Name of the request in AWS, such as ``RunInstances``.
    """

    def __init__(self, what: str, fix: str = "", *, code: str = "", operation: str = "") -> None:
        super().__init__(what, fix)
        self.code = code
        self.operation = operation


class CapacityError(AwsError):
    """AWS has no capacity for this instance type in this zone."""


class QuotaError(AwsError):
    """The quota of the account is too low."""


class PermissionDenied(AwsError):
    """The credentials are valid but do not have the permission."""


class CredentialsError(AwsError):
    """Credentials are missing, or AWS does not accept them."""


class NotFound(AwsError):
    """AWS has no resource of this name or id."""


class AlreadyThere(AwsError):
    """A resource of this name already exists, or it is in use."""


class Throttled(AwsError):
    """Too many requests, even after the retries of botocore."""


class Unreachable(AwsError):
    """AWS did not respond in time; the state of every resource is unknown."""


class SshError(StarClusterError):
    """A node cannot be reached by SSH, or the connection was lost."""


class HostKeyMismatch(SshError):
    """A node has another host key than it was given."""


class RemoteCommandFailed(SshError):
    """A command on a node failed.

    Attributes:
        exit_status: Exit status; None if a signal or a lost connection stopped the command.
        output: Lines that the command wrote.
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


class ConnectionLost(SshError):
    """An open SSH connection was lost; whether the command finished is unknown."""


class CommandTimeout(SshError):
    """A command on a node did not finish in time; it may still run."""


class NodeError(StarClusterError):
    """One node cannot be used; ``alias`` names it."""

    def __init__(self, what: str, fix: str = "", *, alias: str = "") -> None:
        super().__init__(what, fix)
        self.alias = alias


class SetupError(StarClusterError):
    """The setup of the cluster failed on some nodes; the others can be used.

    Attributes:
        failed: Reason of the failure by alias; empty if it does not concern single nodes.
    """

    def __init__(
        self, what: str, fix: str = "", *, failed: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(what, fix)
        self.failed = dict(failed or {})


class PluginError(StarClusterError):
    """A plugin cannot be loaded, or it failed."""


class ClusterError(StarClusterError):
    """A cluster does not exist, already exists, or is in the wrong state."""


class NoInstances(ClusterError):
    """Only the security group of a cluster is left."""


class NotTaken(ClusterError):
    """Another command changes or has changed the cluster, so this one did nothing."""


class Interrupted(ClusterError):
    """Ctrl-C, SIGTERM or SIGHUP stopped the command; the fix names what still runs."""

    exit_code = 130  # starcluster.cli adds the number of another signal


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``Did you mean 'x'?``, or an empty text if no name is similar."""
    by_lower = {word.lower(): word for word in known}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f"Did you mean '{by_lower[near[0]]}'?" if near else ""
