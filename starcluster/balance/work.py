"""What a balancer is doing, noted on the master: another process finishes what one began."""

from __future__ import annotations

from dataclasses import dataclass

from starcluster.node.shell import Shell

FILE = "/var/lib/starcluster/balancer-work"
ADD, REMOVE, DRAIN = "add", "remove", "drain"
_NOTE = 'mkdir -p "${0%/*}" && cat >"$0.new" && mv "$0.new" "$0"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A change of nodes that began; ``kind`` is ``add``, ``remove`` or ``drain``."""

    kind: str
    aliases: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind} {', '.join(self.aliases)}"


def note(ssh: Shell, work: Work) -> None:
    """Note a change before it begins."""
    ssh.checked(["sh", "-c", _NOTE, FILE], stdin=" ".join([work.kind, *work.aliases]) + "\n")


def forget(ssh: Shell) -> None:
    """Note that the change is complete."""
    ssh.checked(["rm", "-f", FILE])


def noted(ssh: Shell) -> Work | None:
    """Return the change that is not complete."""
    words = ssh.run(["cat", FILE]).stdout.split()
    if len(words) < 2 or words[0] not in (ADD, REMOVE, DRAIN):
        return None
    return Work(kind=words[0], aliases=tuple(words[1:]))
