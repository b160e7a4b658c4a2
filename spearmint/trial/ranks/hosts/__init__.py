"""Trials on several hosts of one job: the first host starts the ranks of the others.

The guard of the first host runs a command of the queue (srun, qrsh) for each other host. It brings
an agent there the task and the secret on standard input, then a line each second: if these end, the
agent ends all that it started. At its end, the agent tells how its ranks ended on standard output.

Ranks find each other by the store of rank 0, which listens on 127.0.0.1 only. The guard of the
first host listens for the other hosts, and lets only those through who know the secret.
Only the standard library.
"""
