"""Run Python functions as jobs of a driver, with futures: :func:`spearmint.executor`."""

from spearmint.tasks.task import Task, TaskFailed
from spearmint.tasks.task_executor import TaskExecutor, executor

__all__ = ["Task", "TaskExecutor", "TaskFailed", "executor"]
