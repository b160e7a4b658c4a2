"""A stand-in for torchrun on several hosts: its command line, its meeting point, its processes."""

from __future__ import annotations

from pathlib import Path

_RUN = """
import argparse, json, os, socket, subprocess, sys, time

parser = argparse.ArgumentParser()
for name in ("nnodes", "node-rank", "nproc-per-node", "master-port"):
    parser.add_argument("--" + name, type=int, required=True)
parser.add_argument("--master-addr", required=True)
parser.add_argument("program", nargs=argparse.REMAINDER)
given = parser.parse_args()
if given.node_rank == 0:
    server = socket.create_server(("", given.master_port))
    links = [server.accept()[0] for _ in range(given.nnodes - 1)]
for _ in range(600 if given.node_rank else 0):
    try:
        link = socket.create_connection((given.master_addr, given.master_port))
        break
    except OSError:
        time.sleep(0.1)
told = {"host": socket.gethostname(), "folder": os.getcwd(), "mine": os.environ.get("MINE"),
        "gpus": os.environ.get("CUDA_VISIBLE_DEVICES"), "files": sorted(os.listdir()),
        **vars(given)}
os.write(1, (json.dumps(told) + "\\n").encode())
action, _, number = given.program[-1].partition(" ")
if action == "train":  # until somebody ends it
    ranks = [subprocess.Popen(["sleep", "3011"], start_new_session=True) for _ in range(2)]
    if given.node_rank == int(number or -1):
        time.sleep(1)
        os.kill(os.getpid(), 9)
    time.sleep(3600)
if action == "exit":
    sys.exit(int(number))
"""


def write_torch(folder: Path) -> None:
    """Write a package ``torch`` into ``folder``.

    It tells its arguments and meets the other hosts. The last argument of the program says what
    it does then: ``exit N``, or ``train N``, in which torchrun of host N is killed.
    """
    package = folder / "torch" / "distributed"
    package.mkdir(parents=True)
    for path in (package.parent, package):
        (path / "__init__.py").touch()
    (package / "run.py").write_text(_RUN)
