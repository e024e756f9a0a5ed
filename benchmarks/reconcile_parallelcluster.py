"""ParallelCluster's side of benchmarks/reconcile.py: two turns of clustermgtd, the second one counted.

Run with the Python that holds aws-parallelcluster-node: `reconcile_parallelcluster.py DIR`.
"""

import os
import sys
from logging.config import fileConfig
from pathlib import Path

from outside import Outside, exit_told


def main(place: str) -> None:
    """Does what clustermgtd does in its loop, twice."""
    from slurm_plugin.clustermgtd import ClusterManager, ClustermgtdConfig

    config = ClustermgtdConfig(f"{place}/clustermgtd.conf")
    fileConfig(config.logging_config, disable_existing_loggers=False)
    manager = ClusterManager(config=config)
    manager.manage_cluster()
    Path(f"{place}/calls").write_text("", encoding="utf-8")
    outside = Outside()
    manager.manage_cluster()
    exit_told(outside, f"{place}/parallelcluster.json")
    os._exit(0)  # its workers would wait for minutes


if __name__ == "__main__":
    main(sys.argv[1])
