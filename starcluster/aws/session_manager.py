"""Session Manager of AWS Systems Manager: its agents, and the command of a session for SSH."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from starcluster.aws.client import AwsClient
from starcluster.aws.endpoint import proxies
from starcluster.errors import CredentialsError

POLICY = "AmazonSSMManagedInstanceCore"
# The most instances that one filter accepts.
_A_FILTER = 50
# Policies of AWS that can allow an instance to register.
_MAY_REGISTER = re.compile(r"arn:aws[\w-]*:iam::aws:policy/.*(SSM|AdministratorAccess|PowerUser)")
_OF_AWS = re.compile(r"arn:aws[\w-]*:iam::aws:policy/")
_OTHER_LOGINS = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN")


class SessionManager(AwsClient):
    """Requests about Session Manager; none of them changes anything."""

    def agents(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the status of each agent that has registered, such as ``Online``, by instance."""
        found: dict[str, str] = {}
        for start in range(0, len(ids), _A_FILTER):
            batch = [{"Key": "InstanceIds", "Values": list(ids[start : start + _A_FILTER])}]
            for item in self.pages(
                "ssm", "DescribeInstanceInformation", "InstanceInformationList", Filters=batch
            ):
                found[str(item["InstanceId"])] = str(item.get("PingStatus", ""))
        return found

    def may_register(self, role: str) -> bool:
        """Return whether instances with a role may register; True if its own policies decide."""
        pages = self.pages("iam", "ListAttachedRolePolicies", "AttachedPolicies", RoleName=role)
        attached = [str(policy["PolicyArn"]) for policy in pages]
        if any(_MAY_REGISTER.match(arn) or not _OF_AWS.match(arn) for arn in attached):
            return True
        return any(self.pages("iam", "ListRolePolicies", "PolicyNames", RoleName=role))

    def session_argv(self, instance_id: str, port: int = 22) -> tuple[str, ...]:
        """Return the command that forwards its input and output to a port of an instance."""
        argv = ["aws", "ssm", "start-session", "--target", instance_id]
        argv += ["--document-name", "AWS-StartSSHSession", "--parameters", f"portNumber={port}"]
        argv += ["--region", self.region]
        if self._settings.aws_endpoint_url:
            argv += ["--endpoint-url", self._settings.aws_endpoint_url]
        if not self._settings.aws_validate_certs:
            argv.append("--no-verify-ssl")
        return tuple(argv)

    def session_environment(self) -> dict[str, str]:
        """Return the environment of that command: that of this process with these credentials.

        Raises:
            CredentialsError: There are none.
        """

        def current() -> tuple[str, str, str]:
            found = self._session.get_credentials()
            if found is None:
                raise CredentialsError("no AWS credentials", "Log in: aws configure sso")
            frozen = found.get_frozen_credentials()
            return frozen.access_key or "", frozen.secret_key or "", frozen.token or ""

        key, secret, token = self._do(self._client("ssm"), "credentials", current)
        kept = {name: text for name, text in os.environ.items() if name not in _OTHER_LOGINS}
        mine = {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, "AWS_PAGER": ""}
        if token:
            mine["AWS_SESSION_TOKEN"] = token
        for scheme, address in (proxies(self._settings) or {}).items():
            mine[f"{scheme.upper()}_PROXY"] = address
        return kept | mine
