"""The bill on the master, which all users of the cluster can read and only root can write."""

from __future__ import annotations

from starcluster.logger import log
from starcluster.node.shell import Shell
from starmint.bill import PUBLISHED, Bill, BillError, bill_from_text, bill_text

PATH = str(PUBLISHED)
_MOST_BYTES = 16 * 2**20
_WRITE = """set -eu
folder=${0%/*}
mkdir -p "$folder"
chmod 755 "$folder"
new=$(mktemp "$0.XXXXXX")  # the balancer and other machines write at the same time
trap 'rm -f "$new"' EXIT
cat >"$new"
chmod 644 "$new"
mv -f "$new" "$0"
"""


def read_published(ssh: Shell) -> Bill | None:
    """Return the bill on the master; None if it has none. Raises SshError."""
    answer = ssh.run(["head", "-c", str(_MOST_BYTES), PATH])
    if answer.status != 0:
        return None
    try:
        return bill_from_text(answer.stdout)
    except BillError as error:
        log.warning("ignored %s on the master: %s", PATH, error)
        return None


def publish(ssh: Shell, bill: Bill) -> None:
    """Write the bill to the master; a reader sees the old or the new one. Raises SshError."""
    ssh.checked(["sh", "-c", _WRITE, PATH], stdin=bill_text(bill))
