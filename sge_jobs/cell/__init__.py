"""Set up, check and undo what a cell needs to give each job GPUs of its own."""

from sge_jobs.cell.diagnosis import Machine, Problem, cell_problems, name_problems
from sge_jobs.cell.qconf import Qconf
from sge_jobs.cell.qconf_text import CellConfig
from sge_jobs.cell.removal import removal
from sge_jobs.cell.setup_plan import Change, Plan, Wanted, plan

__all__ = [
    "CellConfig",
    "Change",
    "Machine",
    "Plan",
    "Problem",
    "Qconf",
    "Wanted",
    "cell_problems",
    "name_problems",
    "plan",
    "removal",
]
