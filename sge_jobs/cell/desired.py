"""What a cell needs so that each job gets GPUs of its own: complexes, queue, timings, programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

GPU_COMPLEX = "gpu gpu INT <= YES JOB 0 0"
STATE_COMPLEX = "gpu_state gpu_state STRING == YES NO NONE 0"
PARALLEL_ENVIRONMENT = {
    "pe_name": "smp",
    "slots": "9999",
    "user_lists": "NONE",
    "xuser_lists": "NONE",
    "start_proc_args": "NONE",
    "stop_proc_args": "NONE",
    "allocation_rule": "$pe_slots",
    "control_slaves": "FALSE",
    "job_is_first_task": "TRUE",
    "urgency_slots": "min",
    "accounting_summary": "FALSE",
    "qsort_args": "NONE",
}
# name: (default of the packages, our value)
SCHEDULER = {
    "schedule_interval": ("0:0:15", "0:0:1"),
    "flush_submit_sec": ("0", "1"),
    "flush_finish_sec": ("0", "1"),
}
LOAD_REPORTS = {"load_report_time": ("00:00:40", "00:00:05")}
# A host that is silent for max_unheard counts as lost; reschedule_unknown later its jobs run again
# elsewhere. Healthy hosts lose their jobs if max_unheard is lowered before every host reports more
# often, or if reschedule_unknown is short: after a restart of the master, healthy hosts have been
# silent for up to 32 s.
LOST_HOSTS = {
    "max_unheard": ("00:05:00", "00:00:20"),
    "reschedule_unknown": ("00:00:00", "00:01:00"),
}
# A finished job is in qacct at once; processes that left its group end with it; users can delete a
# job whose host is lost.
PARAMETERS = {
    "qmaster_params": ("ENABLE_FORCED_QDEL_IF_UNKNOWN", "true"),
    "reporting_params": ("accounting_flush_time", "00:00:00"),
    "execd_params": ("ENABLE_ADDGRP_KILL", "true"),
}
CONFIGURED = (*LOAD_REPORTS, *LOST_HOSTS, *PARAMETERS, "load_sensor")
"""Names of the global configuration that may be changed."""
QUEUE = {
    "rerun": ("FALSE", "TRUE"),
    "load_thresholds": ("np_load_avg=1.75", "NONE"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredCell:
    """The site's choices for its cell.

    Attributes:
        queue: Cluster queue whose jobs get GPUs.
        starter, sensor: Programs of this package, as every host sees them.
        gpus: GPUs of each host that was named; changed also where the site set another number.
        gpus_everywhere: GPUs of every host that has no number yet; None to leave those.
        sensed: GPUs that a host's sensor reports, for those that have no number yet.
    """

    queue: str
    starter: PurePosixPath
    sensor: PurePosixPath
    gpus: Mapping[str, int] = field(default_factory=dict)
    gpus_everywhere: int | None = None
    sensed: Mapping[str, int] = field(default_factory=dict)
