"""Changes of a cell's configuration, as calls of qconf."""

from __future__ import annotations

from dataclasses import dataclass

from sge_jobs.cell.qconf_text import Attributes, format_attributes


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One call of qconf.

    Attributes:
        arguments: Arguments of qconf; ``FILE`` stands for the path of a file with ``text``.
        text: Contents of the file.
        file_name: Name of the file; ``qconf -Mconf`` takes the host from it.
        lines: New lines of ``text``, shown to users.
    """

    arguments: tuple[str, ...]
    text: str = ""
    file_name: str = "FILE"
    lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        call = " ".join(["qconf", *self.arguments]).replace("FILE", self.file_name)
        return "\n".join([call, *(f"    {line}" for line in self.lines)])


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePlan:
    """Changes to make, and settings of the site that are not changed.

    Attributes:
        changes: Changes to make now.
        later: Changes to make when every host has applied the first ones.
        wait_s: Longest time in seconds until every host has applied them.
        left: Settings that differ from the recommended ones and are not changed.
    """

    changes: tuple[Change, ...] = ()
    later: tuple[Change, ...] = ()
    wait_s: float = 0.0
    left: tuple[str, ...] = ()


def configured(attributes: Attributes, new: Attributes) -> Change:
    """Return the change of the global configuration to ``attributes``; ``new`` are the new ones."""
    text = format_attributes(attributes)
    return Change(
        arguments=("-Mconf", "FILE"), text=text, file_name="global", lines=setting_lines(new)
    )


def setting_lines(new: Attributes) -> tuple[str, ...]:
    """Return ``name value`` for each new setting, as shown to users."""
    return tuple(f"{name} {value}" for name, value in new.items())
