"""Grid Engine: jobs as values, the queue behind one door, a GPU of its own for every job.

Standard library only: parts of it run on every node, before each job.
"""
