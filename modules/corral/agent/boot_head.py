"""What makes a launched machine the head of its cluster, with the state that an earlier head left."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from corral.agent.apply import carry_over
from corral.agent.boot import install_key, mount_shared
from corral.agent.hosts import Host, credentials, keeper, munge, slurmctld
from corral.agent.munge_key import make_munge_key
from corral.agent.spool import prepare_spool
from corral.model.cluster import ClusterPlan
from corral.model.deployed import Deployed

STATE = Path("/var/lib/corral")  # the state volume
_SLURMCTLD_STATE = STATE / "slurmctld"

log = logging.getLogger("corral.agent")


def boot_head(
    plan: ClusterPlan,
    deployed: Deployed,
    host: Host,
    secrets: Any,
    start_accounting: Callable[[ClusterPlan, Host, Path], None],
    *,
    root: Path = Path("/"),
) -> None:
    """Starts the cluster's controller on this machine, with the state that an earlier head left.

    `start_accounting`: accounting.Accounting.start.
    """
    host.fence_metadata()
    host.set_name(plan.head.host_name)
    host.search(plan.dns_zone)
    host.mount_volume(deployed.state_volume, STATE)
    mount_shared(plan, deployed, host)
    if deployed.home:
        host.make_home(plan.image.default_user)
    install_key(make_munge_key(secrets, deployed.munge_secret), root)
    host.start(munge())
    prepare_spool(root)
    host.start(credentials())
    host.start(keeper())
    carry_over(root, root / STATE.relative_to("/"))
    # A slurmctld that begins has to ask slurmdbd what can be counted, and ends where it cannot.
    start_accounting(plan, host, _SLURMCTLD_STATE)
    host.start(slurmctld(plan.image.slurm_sbin, str(_SLURMCTLD_STATE)))
    log.info("boot head of cluster %s: munge, the keeper, accounting and slurmctld are started", plan.name)
