"""ParallelCluster's side of benchmarks/reconcile.py: two loops of clustermgtd, the second one counted.

Run it with the Python that has aws-parallelcluster-node: `reconcile_parallelcluster.py DIR`.
"""

import os
import sys
from logging.config import fileConfig
from pathlib import Path

from aws_usage import AwsUsage, write_usage


def main(directory: str) -> None:
    """Run the body of clustermgtd's loop twice."""
    from slurm_plugin.clustermgtd import ClusterManager, ClustermgtdConfig

    config = ClustermgtdConfig(f"{directory}/clustermgtd.conf")
    fileConfig(config.logging_config, disable_existing_loggers=False)
    manager = ClusterManager(config=config)
    manager.manage_cluster()
    Path(f"{directory}/calls").write_text("", encoding="utf-8")
    usage = AwsUsage()
    manager.manage_cluster()
    write_usage(usage, f"{directory}/parallelcluster.json")
    os._exit(0)  # its workers would block for minutes


if __name__ == "__main__":
    main(sys.argv[1])
