"""Configurations of Grid Engine, to fill in with ``%``."""

from __future__ import annotations

# Fields in the order of sge_pe(5).
_ENVIRONMENT = {
    "pe_name": "%s",
    "slots": "%s",
    "user_lists": "NONE",
    "xuser_lists": "NONE",
    "start_proc_args": "NONE",
    "stop_proc_args": "NONE",
    "allocation_rule": "$round_robin",
    "control_slaves": "TRUE",
    "job_is_first_task": "FALSE",
    "urgency_slots": "min",
    "accounting_summary": "FALSE",
}
sge_pe_template = "".join(f"{name:<18} {value}\n" for name, value in _ENVIRONMENT.items())
"""A parallel environment for ``qconf -Ap``; fill in its name and its number of slots."""
