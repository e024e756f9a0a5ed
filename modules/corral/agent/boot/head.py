"""Boot a head: the state volume, shared file systems, the agent's daemons, accounting and slurmctld."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from corral.agent.alertmanager import start_alertmanager
from corral.agent.autoscaler.request_queue import prepare_spool
from corral.agent.boot.munge_key import make_munge_key
from corral.agent.boot.sequence import install_key, mount_shared
from corral.agent.config.apply import carry_over
from corral.agent.containers import compile_containers
from corral.agent.directory import start_directory
from corral.agent.errors import AgentError
from corral.agent.events import EVENTS, Event, EventLog
from corral.agent.host.base import Host, autoscaler, credentials, mariadb, munge, slurmctld, slurmdbd
from corral.agent.host.packages import head_packages
from corral.agent.prometheus import start_prometheus
from corral.agent.users.sync import make_homes, record_changes
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
    check_manifest: Callable[[], None],
    sync_accounts: Callable[[ClusterPlan], None],
    *,
    root: Path = Path("/"),
) -> None:
    """Start the cluster's controller on this machine, with the state that an earlier head left.

    `start_accounting`: accounting.Accounting.start. `sync_accounts`: brings slurmdbd to the plan once slurmctld runs.
    `check_manifest`: raises StoreError if the manifest is older than
    one that an earlier head has seen, which the state volume knows.
    """
    sbin = plan.image.slurm_sbin
    controller = slurmctld(sbin, str(_SLURMCTLD_STATE))
    # Before the state is mounted: a reboot must not start slurmctld with half of what it needs.
    host.write_units((munge(), credentials(), autoscaler(), mariadb(), slurmdbd(sbin), controller))
    host.restrict_metadata()
    host.restrict_users()
    host.set_name(plan.head.host_name, plan.head.address)
    host.set_search_domain(plan.dns_zone)
    host.mount_volume(deployed.state_volume, STATE)
    check_manifest()
    mount_shared(plan, deployed, host)
    journal = EventLog(root / EVENTS.relative_to("/"))
    record_changes(host.sync_users(plan.access, plan.admin_homes), plan.access, journal, root)
    if deployed.home:
        host.make_home(plan.image.default_user)
    make_homes(plan.access, host.make_home)
    try:
        start_directory(plan, host, secrets, root, lists_everybody=True)
    except AgentError as error:  # a head without people is better than none
        journal.log_event(Event.DIRECTORY_FAILED, str(error), reason=str(error))
    install_key(make_munge_key(secrets, deployed.munge_secret), root)
    host.start(munge())
    prepare_spool(root)
    host.start(credentials())
    host.start(autoscaler())
    carry_over(root, root / STATE.relative_to("/"))
    # At its first start slurmctld reads the TRES list from slurmdbd, and exits if it cannot.
    start_accounting(plan, host, _SLURMCTLD_STATE)
    compile_containers(plan, head_packages(plan), host)
    host.start(controller)
    sync_accounts(plan)
    start_prometheus(plan, host, root)
    start_alertmanager(plan, host, root)
    log.info("boot head of cluster %s: started munge, autoscaler, accounting and slurmctld", plan.name)
