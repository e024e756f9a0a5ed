"""Boot a login node: shared file systems, people, munge and the agent's daemons. No daemon of Slurm runs there."""

import logging
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from corral.agent.boot.munge_key import await_munge_key
from corral.agent.boot.sequence import install_key, mount_shared
from corral.agent.containers import compile_containers
from corral.agent.directory import start_directory
from corral.agent.host.base import Host, credentials, login_watcher, munge
from corral.agent.host.packages import login_packages
from corral.agent.host_key import sync_host_key
from corral.model.cluster import ClusterPlan
from corral.model.deployed import Deployed

log = logging.getLogger("corral.agent")


def boot_login(
    plan: ClusterPlan,
    deployed: Deployed,
    name: str,
    address: IPv4Address,
    host: Host,
    secrets: Any,
    *,
    root: Path = Path("/"),
) -> None:
    """Boot this machine as the login node of this name: people submit jobs from it."""
    host.write_units((munge(), credentials(), login_watcher()))
    host.restrict_metadata()
    host.restrict_users()
    host.limit_people()
    host.set_name(name, address)
    host.set_search_domain(plan.dns_zone)
    mount_shared(plan, deployed, host)
    host.sync_users(plan.access)
    start_directory(plan, host, secrets, root)
    install_key(await_munge_key(secrets, deployed.munge_secret), root)
    host.start(munge())
    host.start(credentials())
    if sync_host_key(plan, secrets, root):
        host.reload_sshd()
    compile_containers(plan, login_packages(plan), host)
    host.start(login_watcher())
    log.info("boot %s of cluster %s: started munge", name, plan.name)
