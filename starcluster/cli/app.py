"""The object that every command receives: it opens the config and EC2 at first use."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from starcluster.aws.ec2 import Ec2
from starcluster.config import config
from starcluster.config.config import Config


class App:
    """The global options, and the config and EC2 that they select.

    Attributes:
        config_path: Path from the command line; None for the default path.
        region: Region from the command line; empty for the region of the config.
    """

    def __init__(
        self, *, config_path: Path | None = None, region: str = "", debug: bool = False
    ) -> None:
        self.config_path = config_path
        self.region = region
        self.debug = debug

    @cached_property
    def config(self) -> Config:
        """The config; empty if the file does not exist. Raises ConfigError."""
        return config.load(self.config_path)

    @cached_property
    def ec2(self) -> Ec2:
        """EC2 in the region of ``-r``, of the config or of the AWS settings."""
        return Ec2(self.config.aws(), self.region)

    def changes(self) -> list[str]:
        """Return the names of the requests so far that change something in AWS."""
        ec2 = self.__dict__.get("ec2")
        return list(dict.fromkeys(ec2.changes)) if ec2 else []
