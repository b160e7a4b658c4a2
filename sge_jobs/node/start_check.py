"""Check whether jobs can get GPUs on this host.

The starter is checked as a user without rights: ``gpu-starter --start-check``. What users report
about a host could be forged.
"""

from __future__ import annotations

import sys

from sge_jobs.node.claim.assignment import NodeSettings
from sge_jobs.node.claim.locks import Held, Locks
from sge_jobs.node.claim.run_directory import LockError
from sge_jobs.node.gpus import inventory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

PASSED = "ok"
"""What the check prints if it passes."""


def main(args: Sequence[str], locale: str = "") -> NoReturn:
    """Print :data:`PASSED` if the starter can run; otherwise its import has failed before."""
    from sge_jobs.node.claim import starter  # noqa: F401

    sys.stdout.write(f"{PASSED}\n")
    sys.exit(0)


def fault(settings: NodeSettings) -> str:
    """Return why root cannot assign a GPU of this host to a job; empty if it can."""
    known = inventory.read_cache(settings.cache)
    if known is None or not known.gpus:
        return "no GPU found on this host: check with nvidia-smi and sge-jobs check"
    try:
        with Held(Locks(settings.locks, inventory.boot_id()), settings.gpu_wait_s) as locks:
            states = locks.survey(known.uuids)
    except LockError as error:
        return f"cannot assign a GPU: {error}"
    except Exception as error:  # noqa: BLE001 (as the attendant reports it)
        return f"cannot assign GPUs: {type(error).__name__}: {error}"
    if all(state.problem for state in states):
        return f"cannot assign a GPU: {states[0].problem}"
    return ""
