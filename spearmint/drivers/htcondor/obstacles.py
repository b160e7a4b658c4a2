"""Why an idle job can never start: HTCondor's own analysis, of the machines without their jobs."""

from __future__ import annotations

import re

from spearmint.drivers.queue import Obstacle

MACHINES = 'SlotType =!= "Dynamic"'
"""Constraint of the slots to analyse: those that jobs divide, and undivided ones."""

_LINE = re.compile(r"(\w+) = (.*)")
_STEP = re.compile(r"^\[\d+\]\s+(\d+)\s+(.*\S)", re.MULTILINE)
_DEFINED = re.compile(r"^ {4}(\w+) = (.*\S)", re.MULTILINE)
_OF = re.compile(r"Of (\d+) machines")
_BY_JOB = re.compile(r"(\d+) are rejected by your job's requirements")
_BY_MACHINE = re.compile(r"(\d+) reject your job because of their own requirements")
_FIX = "Request less, or other machines. Analyse it: condor_q -better-analyze {id}"
_OWN = "Show what they accept: condor_q -better-analyze -reverse {id}"
_NONE = "Show the machines: condor_status"


def emptied(ads: str) -> str:
    """Return the ClassAds of slots, in the long form, as they are without any job.

    A slot that other jobs use has fewer resources, so that the analysis of HTCondor calls a job
    impossible that only waits for them. So is a job that waits for the machine that it was lost on.
    """
    return "\n\n".join(_emptied(ad) for ad in ads.split("\n\n") if ad.strip()) + "\n"


def _emptied(ad: str) -> str:
    found = dict(_LINE.findall(ad))
    lines = [ad.strip("\n")]
    for name in found.get("MachineResources", "").strip('"').split():
        if (total := found.get(f"TotalSlot{name}")) is not None:
            lines.append(f"{name} = {total}")
    gpus = re.findall(r"[^\s,]+", found.get("AssignedGPUs", "").strip('"'))
    if "AvailableGPUs" in found:
        named = (re.sub(r"\W", "_", gpu) for gpu in gpus)
        lines.append(f"AvailableGPUs = {{ {','.join(f'GPUs_{name}' for name in named)} }}")
    # The job does not go back to a machine that has not reported since; it still waits for it.
    lines += ['State = "Unclaimed"', "LastHeardFrom = undefined"]
    return "\n".join(lines)


def obstacle_of(id: str, analysis: str) -> Obstacle | None:
    """Return why a job can never start, from ``condor_q -better-analyze``; None if it can."""
    machines, by_job, by_machine = (
        int(found[1]) if (found := pattern.search(analysis)) else -1
        for pattern in (_OF, _BY_JOB, _BY_MACHINE)
    )
    if machines < 0 or by_job < 0 or by_job + max(0, by_machine) < machines:
        return None
    start = f"HTCondor cannot start job {id}: "
    if not machines:
        reason = f"{start}no machine of the pool accepts jobs"
        return Obstacle(reason=reason, fix=_NONE, key="machines", passes=True)
    if by_job < machines:
        reason = f"{start}{by_machine} machines refuse it by their own requirements"
        return Obstacle(reason=reason, fix=_OWN.format(id=id), key="own", passes=True)
    unmet = _unmet(analysis)
    reason = f"{start}none of {machines} machines meets: {unmet}"
    return Obstacle(reason=reason, fix=_FIX.format(id=id), key=unmet)


def _unmet(analysis: str) -> str:
    """Return the conditions that no machine meets, with the job's values."""
    steps = _STEP.findall(analysis)
    conditions = [text for count, text in steps if count == "0"] or [t for _, t in steps[-1:]]
    defined = dict(_DEFINED.findall(analysis))
    names = dict.fromkeys(re.findall(r"\w+", " ".join(conditions)))
    values = ", ".join(f"{name} = {defined[name]}" for name in names if name in defined)
    return "; ".join(conditions) + (f" ({values})" if values else "")
