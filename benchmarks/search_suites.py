"""The suites of the search benchmark: functions, real tasks, more of them, and BBOB."""

from __future__ import annotations

from search_bbob import BBOB
from search_problems import PROBLEMS as FUNCTIONS
from search_problems import Problem
from search_tasks import TASKS
from search_tasks_more import MORE_TASKS

SUITES: dict[str, dict[str, Problem]] = {
    "functions": FUNCTIONS,
    "tasks": TASKS,
    "more-tasks": MORE_TASKS,
    "bbob": BBOB,
}
PROBLEMS: dict[str, Problem] = {**FUNCTIONS, **TASKS, **MORE_TASKS, **BBOB}
