"""A fake node, without an EC2 instance."""

from __future__ import annotations

import re

from starcluster.aws.model import Instance
from starcluster.model import MASTER, TAG_ALIAS
from starcluster.node.node import Node
from starcluster.testing.shell import FakeShell


class FakeNode(Node):
    """A node for tests; all methods of a node use its :class:`FakeShell`."""

    def __init__(
        self,
        alias: str = "",
        shell: FakeShell | None = None,
        *,
        instance_type: str = "c5.large",
        is_spot: bool = False,
    ) -> None:
        """Create the node.

        Args:
            alias: ``master``, ``node001``, ...; defaults to the name of ``shell``.
            shell: Defaults to a new one.
        """
        shell = shell or FakeShell()
        alias = shell.name = alias or shell.name
        instance = Instance(
            id=f"i-{alias}",
            state="running",
            type=instance_type,
            image_id="ami-1",
            zone="us-east-1a",
            private_ip=_address(alias),
            is_spot=is_spot,
            tags={TAG_ALIAS: alias},
        )
        super().__init__(instance, lambda _: shell)  # type: ignore[arg-type, return-value]
        self._fake = shell

    @property
    def ssh(self) -> FakeShell:  # type: ignore[override]
        """The shell; a test can read from it which commands ran."""
        return self._fake


def _address(alias: str) -> str:
    digits = re.search(r"\d+$", alias)
    return f"10.0.0.{1 if alias == MASTER else 1 + int(digits[0]) if digits else 250}"
