"""Find out why a waiting job can never start; a busy cell is not an obstacle."""

from sge_jobs.queue.obstacles.find import find_obstacle

__all__ = ["find_obstacle"]
