"""Set up, check and undo the configuration of a cell that gives each job its own GPUs."""

from sge_jobs.cell.changes import Change, ChangePlan
from sge_jobs.cell.desired import DesiredCell
from sge_jobs.cell.diagnosis import Machine, cell_problems, name_problems
from sge_jobs.cell.problem import Problem
from sge_jobs.cell.qconf import Qconf
from sge_jobs.cell.qconf_text import CellConfig
from sge_jobs.cell.removal import plan_removal
from sge_jobs.cell.setup_plan import plan_setup

__all__ = [
    "CellConfig",
    "Change",
    "ChangePlan",
    "DesiredCell",
    "Machine",
    "Problem",
    "Qconf",
    "cell_problems",
    "name_problems",
    "plan_removal",
    "plan_setup",
]
