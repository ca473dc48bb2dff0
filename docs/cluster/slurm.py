"""Ask Slurm for workers, run a command with them, and give them back.

    python slurm.py WORKERS COMMAND…

The scheduler runs on the machine of this program. What a worker gets (cores, memory, time, partition) stands below.
"""

import subprocess
import sys

from dask_jobqueue import SLURMCluster
from distributed.security import Security


def main(workers: int, command: list[str]) -> int:
    """Run the command with `--executor` and the address of the cluster; return its exit code."""
    with SLURMCluster(
        cores=1,
        processes=1,
        memory="1 GB",
        walltime="01:00:00",
        protocol="tls://",
        security=Security(require_encryption=True),  # the certificates that the environment names
        log_directory="slurm-logs",
    ) as cluster:
        cluster.scale(jobs=workers)
        cluster.wait_for_workers(workers)
        return subprocess.run([*command, "--executor", cluster.scheduler_address], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
