"""Changes of a cell's configuration, as calls of qconf."""

from __future__ import annotations

from dataclasses import dataclass

from sge_jobs.cell.qconf_text import Attributes, format_attributes


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One call of qconf.

    Attributes:
        arguments: Of qconf; ``FILE`` is replaced by a file that holds ``text``.
        text: What that file holds.
        file_name: Its name, where qconf reads a meaning into it.
        lines: The lines of ``text`` that are new, for people.
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
    """Changes, and the differences that are left as the site set them.

    Attributes:
        later: Changes for when every host has taken the first ones.
        wait_s: Seconds that this takes at most.
    """

    changes: tuple[Change, ...] = ()
    later: tuple[Change, ...] = ()
    wait_s: float = 0.0
    left: tuple[str, ...] = ()


def configured(attributes: Attributes, new: Attributes) -> Change:
    """Return the change of the global configuration to ``attributes``, of which ``new`` is new."""
    text = format_attributes(attributes)
    return Change(
        arguments=("-Mconf", "FILE"), text=text, file_name="global", lines=setting_lines(new)
    )


def setting_lines(new: Attributes) -> tuple[str, ...]:
    """Return ``name value`` of each new setting, for people."""
    return tuple(f"{name} {value}" for name, value in new.items())
