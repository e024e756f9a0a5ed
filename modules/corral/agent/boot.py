"""What makes a launched machine one of its cluster: packages, files, disks, the munge key, daemons. In this order.

Each step can be done again: a machine that is rebooted, or whose agent was killed in the middle, continues. What a head
alone needs is `boot_head`'s: a node would only load it.
"""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from corral.agent.errors import AgentError
from corral.agent.health.check import check_boot
from corral.agent.health.judge import expected_of
from corral.agent.health.readings import Probe
from corral.agent.hosts import Host, credentials, munge, slurmd, watcher
from corral.agent.identity import Identity
from corral.agent.install import Placement, install
from corral.agent.munge_key import await_munge_key
from corral.agent.packages import Package, head_packages, node_packages
from corral.agent.places import is_needed, places
from corral.agent.ssh import ssh_client, sshd_reads
from corral.agent.store import Store
from corral.model.cluster import ClusterPlan, QueuePlan
from corral.model.deployed import Deployed
from corral.model.jsons import from_json
from corral.model.markets import Role

HOME = Path("/home")
_CONTROLLER_PORT = 6817

log = logging.getLogger("corral.agent")


class BootError(AgentError):
    """A machine that cannot become what it was launched for."""


def fetch(
    store: Store,
    role: Role,
    queue: str | None,
    *,
    root: Path = Path("/"),
    host_in: Callable[[str], Host] | None = None,
) -> tuple[ClusterPlan, Deployed]:
    """The cluster's records, when its files are installed on this machine. Doing it again changes nothing.

    With `host_in`, the host of a region, packages are installed first: files belong to users that packages make.
    Raises BootError where the store does not hold a whole cluster, or not this queue.
    """
    files = {name: store.read(name) for name in store.names() if is_needed(name, role)}
    plan, deployed = _records(files)
    if role is Role.COMPUTE and queue not in {known.name for known in plan.queues}:
        names = ", ".join(known.name for known in plan.queues)
        raise BootError(f"cluster {plan.name} has no queue {queue!r} - it has {names}")
    host = host_in(plan.region) if host_in else None
    if host:
        host.stop_updates()
        host.install(_packages(plan, queue))
    changed = install((*places(files, role, queue), *ssh_client(plan)), root)
    if host and sshd_reads(changed):
        host.reload_sshd()
    log.info("install %s: %s", role, ", ".join(changed) or "nothing has changed")
    return plan, deployed


def boot_node(
    plan: ClusterPlan,
    deployed: Deployed,
    identity: Identity,
    host: Host,
    secrets: Any,
    probe: Probe,
    *,
    root: Path = Path("/"),
) -> None:
    """Makes this machine the node that it was launched as: its slurmd registers with the head.

    A machine that is not fit for jobs does not: HealthError.
    """
    host.fence_metadata()
    host.search(plan.dns_zone)
    mount_shared(plan, deployed, host)
    install_key(await_munge_key(secrets, deployed.munge_secret), root)
    host.start(munge())
    host.start(credentials())
    expected = expected_of(plan, identity.queue)
    if expected.gpus:
        host.wake_gpus()
    check_boot(expected, probe)
    queue = _queue(plan, identity.queue)
    if queue.nvme_mount:
        host.mount_nvme(Path(queue.nvme_mount))
    options = ("--conf-server", f"{plan.head.address}:{_CONTROLLER_PORT}", "-N", identity.node)
    host.start(slurmd(plan.image_of(queue).slurm_sbin), options)
    host.start(watcher())
    log.info("boot %s of cluster %s: munge and slurmd are started", identity.node, plan.name)


def mount_shared(plan: ClusterPlan, deployed: Deployed, host: Host) -> None:
    """Mounts the file systems that all machines of the cluster share."""
    if deployed.home:
        host.mount_home(deployed.home, HOME)
    for system in plan.lustre:
        made = deployed.lustre[system.name]
        host.mount_lustre(made.dns_name, made.mount_name, Path(system.mount))


def install_key(key: bytes, root: Path) -> None:
    """Puts the munge key where munged reads it."""
    install((Placement(path="/etc/munge/munge.key", content=key, mode=0o400, owner="munge"),), root)


def _packages(plan: ClusterPlan, queue: str | None) -> tuple[Package, ...]:
    return node_packages(plan, _queue(plan, queue)) if queue else head_packages(plan)


def _queue(plan: ClusterPlan, name: str) -> QueuePlan:
    return next(known for known in plan.queues if known.name == name)


def _records(files: Mapping[str, bytes]) -> tuple[ClusterPlan, Deployed]:
    for name in ("cluster.json", "deployed.json"):
        if name not in files:
            raise BootError(f"{name} is missing below the cluster's prefix - `corral up` writes it, last of all files")
    try:
        plan = from_json(ClusterPlan, files["cluster.json"].decode())
        return plan, from_json(Deployed, files["deployed.json"].decode())
    except ValueError as error:
        raise BootError(f"the cluster's records are not those of this agent: {error}") from error
