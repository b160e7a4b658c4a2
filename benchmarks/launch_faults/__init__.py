"""Interrupt, kill and repeat commands while AWS is slow, late and loses responses.

``python -m benchmarks.launch_faults --runs 200`` makes 200 seeded runs of ``start``, ``start -x``,
``addnode``, ``removenode``, ``restart``, ``stop``, ``terminate`` and ``listclusters`` against the
fake EC2 without hosts. Each run compares the last message of each command with EC2's true state,
and looks for two nodes of one name and for instances left after ``terminate``. A seed makes the
same choices again; the exact timing depends on the machine.
"""
