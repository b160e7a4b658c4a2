"""Test plugins without a machine: fake nodes with files, users and scripted commands.

>>> from starcluster.testing import FakeNode
>>> node = FakeNode("node001")
>>> node.ssh.answer("nvidia-smi", "Tesla T4")  # its output from now on
>>> node.ssh.execute("nvidia-smi --query-gpu=name --format=csv,noheader")
['Tesla T4']
>>> node.add_user("ann", uid=1001)
>>> node.getpwnam("ann").pw_dir
'/home/ann'
>>> node.ssh.ran[0]
'nvidia-smi --query-gpu=name --format=csv,noheader'

Nothing is executed and nothing is sent. ``node.ssh`` has all methods of a real connection, but its
files are in memory and its programs are those that the test names. Other programs exit with 127,
like a program that is not installed.
"""

from starcluster.testing.node import FakeNode
from starcluster.testing.shell import ANY, FakeShell

__all__ = ["ANY", "FakeNode", "FakeShell"]
