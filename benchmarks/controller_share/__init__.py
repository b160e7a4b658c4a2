"""Measure the CPU of a search while 1,000 trials run in a queue.

``python -m benchmarks.controller_share`` starts ``spearmint`` with each driver. The commands of the
queue are stand-ins that keep the state of the jobs and list them as the real ones do; Celery has a
real Redis and stand-ins for its workers. No trial has a process. Needs no root.
"""
