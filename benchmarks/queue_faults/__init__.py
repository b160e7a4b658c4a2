"""Run the same search on each queue of the test bed under the same faults.

``python -m benchmarks.queue_faults --drivers local,SGE,SLURM,HTCONDOR,CELERY`` runs 30 trials with
each driver, as root, on three hosts (``local``: one) with two declared GPUs each. It kills the
controller 20 times at seeded random instants, stops the daemons of the queue for 60 s, kills a
host, and fills the disk of the experiment for 30 s. After each kill and each error it reruns the
same command. Trials append the times of their start and end to a file on another disk.
"""
