"""What makes a launched machine one of its cluster: files, name, disks, the munge key, daemons. In this order.

Each step can be done again: a machine that is rebooted, or whose agent was killed in the middle, continues.
"""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from corral.agent.apply import carry_over
from corral.agent.errors import AgentError
from corral.agent.health.check import check_boot
from corral.agent.health.judge import expected_of
from corral.agent.health.readings import Probe
from corral.agent.hosts import Host, credentials, keeper, munge, slurmctld, slurmd, watcher
from corral.agent.identity import Identity
from corral.agent.install import Placement, install
from corral.agent.keep import prepare_spool
from corral.agent.munge_key import await_munge_key, make_munge_key
from corral.agent.places import is_needed, places
from corral.agent.ssh import ssh_client
from corral.agent.store import Store
from corral.model.cluster import ClusterPlan, ImagePlan
from corral.model.deployed import Deployed
from corral.model.jsons import from_json
from corral.model.markets import Role

STATE = Path("/var/lib/corral")  # the state volume of a head
_SLURMCTLD_STATE = STATE / "slurmctld"
HOME = Path("/home")
_CONTROLLER_PORT = 6817

log = logging.getLogger("corral.agent")


class BootError(AgentError):
    """A machine that cannot become what it was launched for."""


def fetch(store: Store, role: Role, queue: str | None, *, root: Path = Path("/")) -> tuple[ClusterPlan, Deployed]:
    """The cluster's records, when its files are installed on this machine. Doing it again changes nothing.

    Raises BootError where the store does not hold a whole cluster, or not this queue.
    """
    files = {name: store.read(name) for name in store.names() if is_needed(name, role)}
    plan, deployed = _records(files)
    if role is Role.COMPUTE and queue not in {known.name for known in plan.queues}:
        names = ", ".join(known.name for known in plan.queues)
        raise BootError(f"cluster {plan.name} has no queue {queue!r} - it has {names}")
    changed = install((*places(files, role, queue), *ssh_client(plan)), root)
    log.info("install %s: %s", role, ", ".join(changed) or "nothing has changed")
    return plan, deployed


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
    _mount_shared(plan, deployed, host)
    _install_key(make_munge_key(secrets, deployed.munge_secret), root)
    host.start(munge())
    prepare_spool(root)
    host.start(credentials())
    host.start(keeper())
    carry_over(root, root / STATE.relative_to("/"))
    # A slurmctld that begins has to ask slurmdbd what can be counted, and ends where it cannot.
    start_accounting(plan, host, _SLURMCTLD_STATE)
    host.start(slurmctld(plan.image.slurm_sbin, str(_SLURMCTLD_STATE)))
    log.info("boot head of cluster %s: munge, the keeper, accounting and slurmctld are started", plan.name)


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
    _mount_shared(plan, deployed, host)
    _install_key(await_munge_key(secrets, deployed.munge_secret), root)
    host.start(munge())
    host.start(credentials())
    check_boot(expected_of(plan, identity.queue), probe)
    image = _image(plan, identity.queue)
    options = ("--conf-server", f"{plan.head.address}:{_CONTROLLER_PORT}", "-N", identity.node)
    host.start(slurmd(image.slurm_sbin), options)
    host.start(watcher())
    log.info("boot %s of cluster %s: munge and slurmd are started", identity.node, plan.name)


def _mount_shared(plan: ClusterPlan, deployed: Deployed, host: Host) -> None:
    if deployed.home:
        host.mount_home(deployed.home, HOME)
    for system in plan.lustre:
        made = deployed.lustre[system.name]
        host.mount_lustre(made.dns_name, made.mount_name, Path(system.mount))


def _install_key(key: bytes, root: Path) -> None:
    install((Placement(path="/etc/munge/munge.key", content=key, mode=0o400, owner="munge"),), root)


def _image(plan: ClusterPlan, queue: str) -> ImagePlan:
    return plan.image_of(next(known for known in plan.queues if known.name == queue))


def _records(files: Mapping[str, bytes]) -> tuple[ClusterPlan, Deployed]:
    for name in ("cluster.json", "deployed.json"):
        if name not in files:
            raise BootError(f"{name} is missing below the cluster's prefix - `corral up` writes it, last of all files")
    try:
        plan = from_json(ClusterPlan, files["cluster.json"].decode())
        return plan, from_json(Deployed, files["deployed.json"].decode())
    except ValueError as error:
        raise BootError(f"the cluster's records are not those of this agent: {error}") from error
