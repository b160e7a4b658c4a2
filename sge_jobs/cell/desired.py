"""The settings of a cell with which each job gets its own GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

GPU_COMPLEX = "gpu gpu INT <= YES JOB 0 0"
SHARE_COMPLEX = "gpu_share gpu_share DOUBLE <= YES JOB 0 0"
STATE_COMPLEX = "gpu_state gpu_state STRING == YES NO NONE 0"
# The shortcut tells the sensors to restrict the device files of the GPUs.
STATE_COMPLEX_CLOSED = "gpu_state gpu_closed STRING == YES NO NONE 0"
FAULT_COMPLEX = "gpu_fault gpu_fault STRING == NO NO NONE 0"
# The shortcut tells the sensors that a faulty host stays in the rotation.
FAULT_COMPLEX_KEPT = "gpu_fault gpu_kept STRING == NO NO NONE 0"
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
# name: (default of the packages, value set by sge-jobs)
SCHEDULER = {
    "schedule_interval": ("0:0:15", "0:0:1"),
    "flush_submit_sec": ("0", "1"),
    "flush_finish_sec": ("0", "1"),
}
LOAD_REPORTS = {"load_report_time": ("00:00:40", "00:00:05")}
# A host that does not report for max_unheard counts as lost; after reschedule_unknown, its jobs are
# rerun on other hosts. Healthy hosts lose their jobs if max_unheard is lowered before every host
# reports more often, or if reschedule_unknown is short: after a restart of the master, healthy
# hosts did not report for up to 32 s.
LOST_HOSTS = {
    "max_unheard": ("00:05:00", "00:00:20"),
    "reschedule_unknown": ("00:00:00", "00:01:00"),
}
# Users can delete a job whose host is lost; qacct shows a finished job immediately; processes that
# left their process group are terminated with the job.
PARAMETERS = {
    "qmaster_params": ("ENABLE_FORCED_QDEL_IF_UNKNOWN", "true"),
    "reporting_params": ("accounting_flush_time", "00:00:00"),
    "execd_params": ("ENABLE_ADDGRP_KILL", "true"),
}
CONFIGURED = (*LOAD_REPORTS, *LOST_HOSTS, *PARAMETERS, "load_sensor")
"""Names of the global configuration that setup can change."""
QUEUE = {
    "rerun": ("FALSE", "TRUE"),
    "load_thresholds": ("np_load_avg=1.75", "NONE"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredCell:
    """The site's choices for its cell.

    Attributes:
        queue: Cluster queue whose jobs get GPUs.
        starter, sensor: Paths of this package's programs on the hosts.
        gpus: Number of GPUs by host; replaces a number that the site has set.
        gpus_everywhere: Number of GPUs for every host without a number; None for ``sensed``.
        sensed: Number of GPUs that each host's sensor reports, for hosts without a number.
        keeps_hosts: Whether hosts that cannot start jobs stay in the rotation.
        restricts_devices: Whether only the processes of its jobs can open a GPU; None to keep what
            the cell has.
    """

    queue: str
    starter: PurePosixPath
    sensor: PurePosixPath
    gpus: Mapping[str, int] = field(default_factory=dict)
    gpus_everywhere: int | None = None
    sensed: Mapping[str, int] = field(default_factory=dict)
    keeps_hosts: bool = False
    restricts_devices: bool | None = None
