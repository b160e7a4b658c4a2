"""Measure the start of a cluster without the boot, and the time to the first GPU job; needs root.

``python -m benchmarks.starcluster_start 3 8 16`` starts clusters of these sizes on the test bed.
Times are taken when the job runs with a GPU, by its own clock, and when ``qsub -sync y`` returns.
"""

from __future__ import annotations

import argparse
import shlex
import statistics
import time

from tests.on_hosts.live_cluster import NAME, Bench
from tests.testbed.cloud import Cloud

_JOB = "date +%s.%N; echo ${CUDA_VISIBLE_DEVICES:-none}"


def main() -> None:
    """Print a row for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("sizes", type=int, nargs="*", default=[3, 8, 16], help="Nodes. Default: 3 8 16.")
    add("--repeats", type=int, default=3, help="Number of starts for each size. Default: 3.")
    given = parser.parse_args()
    print("nodes  set-up s  job runs after s  qsub -sync y returns after s   (medians)")
    for size in given.sizes:
        with Cloud() as cloud:
            bench = cloud.call(Bench, cloud)
            rows = [cloud.call(_measured, bench, size) for _ in range(given.repeats)]
        middle = [statistics.median(column) for column in zip(*rows, strict=True)]
        print(f"{size:5}  {middle[0]:8.1f}  {middle[1]:16.2f}  {middle[2]:28.2f}   {rows}")


def _measured(bench: Bench, size: int) -> tuple[float, float, float]:
    began: list[float] = []

    def progress(alias: str, what: str) -> None:
        if what == "connecting":
            began.append(time.time())

    bench.start(bench.lifecycle(progress), cluster_size=str(size))
    ready = time.time()
    ran, back = first_job(bench)
    bench.lifecycle().terminate()
    return ready - min(began), ran - ready, back - ready


def first_job(bench: Bench) -> tuple[float, float]:
    """Run a job with a GPU; return when it ran, by its own clock, and when qsub returned."""
    from starcluster.cluster import find

    master = find(bench.ec2, bench.config, NAME).master
    qsub = ["qsub", "-sync", "y", "-l", "gpu=1", "-cwd", "-j", "y", "-o", "first", "-N", "first"]
    command = f"echo {shlex.quote(_JOB)} | {shlex.join(qsub)}"
    master.ssh.execute(shlex.join(["su", "-", "sgeadmin", "-c", command]))
    back = time.time()
    output = master.ssh.read_file("/home/sgeadmin/first").split()
    if not output[1].startswith("GPU-"):
        raise RuntimeError(f"the job had no GPU: {output}")
    return float(output[0]), back


if __name__ == "__main__":
    main()
