"""What every command is given: the config and EC2, both opened when first used."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from starcluster.aws.ec2 import Ec2
from starcluster.config import config
from starcluster.config.config import Config


class App:
    """The global options and what they lead to.

    Attributes:
        config_path: As given; None for the default.
        region: As given; empty for that of the config.
    """

    def __init__(
        self, *, config_path: Path | None = None, region: str = "", debug: bool = False
    ) -> None:
        self.config_path = config_path
        self.region = region
        self.debug = debug

    @cached_property
    def config(self) -> Config:
        """The config file; an empty one where there is none. Raises ConfigError."""
        return config.load(self.config_path)

    @cached_property
    def ec2(self) -> Ec2:
        """EC2 in the region of ``-r``, of the config or of AWS's own settings."""
        return Ec2(self.config.aws(), self.region)
