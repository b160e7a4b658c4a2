"""Slurm's accounting on a host of the test bed: MariaDB, slurmdbd, an account and QOS."""

from __future__ import annotations

from tests.testbed.cell import USER
from tests.testbed.fabric import Node
from tests.testbed.queue_cluster import checked
from tests.waiting import until

ACCOUNT, QOS, ONE_JOB = "lab", "fast", "single"
"""The default account of the user, a QOS without limits, and one of a single running job."""

# slurmctld soon forgets ended jobs: only the accounting then knows how they ended.
CONFIGURATION = """
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=master
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=gres/gpu
JobAcctGatherType=jobacct_gather/linux
MinJobAge=2
"""

_DAEMON = """
AuthType=auth/munge
DbdHost=master
SlurmUser=slurm
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StorageLoc=slurm_acct_db
LogFile=/var/spool/slurmdbd/log
PidFile=/run/slurmdbd.pid
"""
_DATABASE = """
create database slurm_acct_db;
create user slurm@localhost identified via unix_socket;
grant all on slurm_acct_db.* to slurm@localhost;
"""
_ENTRIES = (
    ("cluster", "bed"),
    ("account", ACCOUNT),
    ("qos", QOS),
    ("qos", ONE_JOB, "MaxJobsPerUser=1"),
    ("user", USER, f"account={ACCOUNT}", f"qos=normal,{QOS},{ONE_JOB}"),
)


def start_accounting(node: Node) -> None:
    """Start MariaDB and slurmdbd on ``node``, and add the cluster, the account and the QOS."""
    node.run("install", "-d", "-o", "mysql", "/run/mysqld")
    node.run("install", "-d", "-o", "slurm", "/var/spool/slurmdbd")
    daemon = "setsid mariadbd --user=mysql --skip-networking >/var/log/mariadb 2>&1 </dev/null &"
    checked(node.run("sh", "-c", daemon))
    until(lambda: node.run("mariadb", "-e", "select 1").returncode == 0, 60, 0.1)
    checked(node.run("mariadb", "-e", _DATABASE))
    node.write("/etc/slurm/slurmdbd.conf", _DAEMON, 0o600)
    checked(node.run("chown", "slurm", "/etc/slurm/slurmdbd.conf"))
    checked(node.run("slurmdbd"))
    until(lambda: node.run("sacctmgr", "show", "cluster").returncode == 0, 60, 0.1)
    for entry in _ENTRIES:
        checked(node.run("sacctmgr", "--immediate", "add", *entry))
