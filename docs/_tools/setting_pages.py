"""Pages of the options and keys that ``spearmint run`` declares."""

from __future__ import annotations

from spearmint.config.reference import key_rows, option_rows, option_sections
from spearmint.resources import Resources
from spearmint.run_options import STOP, RunOptions

RESOURCES = "What each trial needs of a queue"


def pages() -> dict[str, str]:
    """Return the text of each page by its name in ``_generated``."""
    return {
        "config_keys.rst": key_rows(RunOptions),
        "resource_keys.rst": key_rows(Resources),
        "run_options.rst": option_sections(RunOptions)
        + "\n"
        + option_sections(Resources, RESOURCES),
        "stop_options.rst": option_rows(RunOptions, STOP),
    }
