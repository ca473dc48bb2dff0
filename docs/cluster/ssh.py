"""Start a scheduler and workers by SSH, run a command with them, and end them.

    python ssh.py HOST HOST… -- COMMAND…

The scheduler runs on the first host, a worker on each of the others. Users, ports and keys are those of ~/.ssh/config.
"""

import subprocess
import sys

from distributed import SSHCluster


def main(hosts: list[str], command: list[str]) -> int:
    """Run the command with `--executor` and the address of the cluster; return its exit code."""
    with SSHCluster(
        hosts,
        scheduler_options={"host": f"tls://{hosts[0]}", "port": 0, "protocol": "tls"},
        worker_options={"protocol": "tls", "nthreads": 2},
        remote_python=sys.executable,
    ) as cluster:
        cluster.wait_for_workers(len(hosts) - 1)
        return subprocess.run([*command, "--executor", cluster.scheduler_address], check=False).returncode


if __name__ == "__main__":
    end = sys.argv.index("--")
    sys.exit(main(sys.argv[1:end], sys.argv[end + 1 :]))
