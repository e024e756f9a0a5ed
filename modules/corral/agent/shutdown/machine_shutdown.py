"""Requeue the jobs of a node whose machine shuts down. `corral-agent node-shutdown`, which systemd runs first.

systemd then ends the processes of jobs, and Slurm would count these as failed: it cannot know why they get a signal.
EC2, operators and programs shut machines down like this. A power cut needs nothing: slurmctld misses the node and
requeues its jobs.
"""

import logging
from collections.abc import Callable

from corral.agent import slurm
from corral.agent.shutdown.head_liveness import has_step

log = logging.getLogger("corral.agent")


def requeue_jobs(node: str, working: Callable[[], bool] = has_step) -> None:
    """Requeue the jobs that have processes here, and power the node down. Raises SlurmError.

    `working`: whether a job step runs here. Without one nothing is done: the node may have another machine by now.
    """
    if not working():
        return
    log.warning("%s shuts down under a job: requeue", node)
    slurm.release(node, "corral: the machine shuts down")
