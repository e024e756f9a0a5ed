"""Boot steps of head and node: packages, files, disks, the munge key, daemons, in this order.

Every step is idempotent, so a rebooted machine or a restarted agent continues. The head's own steps are in `boot.head`
and those of login nodes in `boot.login`, which nodes do not load.
"""

import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from corral.agent.boot.munge_key import await_munge_key
from corral.agent.config.file_placements import is_needed, placements_for
from corral.agent.config_store import IncompleteUpload, ManifestStore
from corral.agent.containers import compile_containers
from corral.agent.directory import start_directory
from corral.agent.errors import AgentError
from corral.agent.file_install import Placement, install
from corral.agent.health.check import check_boot
from corral.agent.health.evaluate import expected_of
from corral.agent.health.probes import Probe
from corral.agent.host.base import Host, credentials, munge, slurmd, watcher
from corral.agent.host.packages import Package, head_packages, login_packages, node_packages
from corral.agent.node_identity import NodeIdentity
from corral.agent.ssh import ssh_client, sshd_reads
from corral.agent.users.sync import make_homes
from corral.model.cluster import ClusterPlan, QueuePlan
from corral.model.deployed import Deployed
from corral.model.enums import Role
from corral.model.serialization import from_json

HOME = Path("/home")
_CONTROLLER_PORT = 6817
_READS = 20
_READ_STEP_S = 3.0

log = logging.getLogger("corral.agent")


class BootError(AgentError):
    """A machine cannot boot in its role."""


def fetch(
    store: ManifestStore,
    role: Role,
    queue: str | None,
    *,
    root: Path = Path("/"),
    host_in: Callable[[str], Host] | None = None,
    wait: Callable[[float], None] = time.sleep,
) -> tuple[ClusterPlan, Deployed]:
    """Install the cluster's files on this machine and return its records. Idempotent.

    With `host_in`, the host of a region, packages are installed first: they create the users that own files.
    Raises BootError if the store has no complete cluster, or lacks this queue.
    """
    files = _read(store, role, wait)
    plan, deployed = _records(files)
    if role is Role.COMPUTE and queue not in {known.name for known in plan.queues}:
        names = ", ".join(known.name for known in plan.queues)
        raise BootError(f"cluster {plan.name} has no queue {queue!r}; expected one of {names}")
    host = host_in(plan.region) if host_in else None
    if host:
        host.stop_updates()
        host.install(_packages(plan, role, queue))
    changed = install((*placements_for(files, role, queue), *ssh_client(plan)), root)
    if host and sshd_reads(changed):
        host.reload_sshd()
    log.info("install %s: %s", role, ", ".join(changed) or "nothing has changed")
    return plan, deployed


def boot_node(
    plan: ClusterPlan,
    deployed: Deployed,
    identity: NodeIdentity,
    host: Host,
    secrets: Any,
    probe: Probe,
    *,
    root: Path = Path("/"),
) -> None:
    """Boot this machine as its node: start slurmd, which registers with the head.

    Raises HealthError if the machine is not fit for jobs.
    """
    host.restrict_metadata()
    host.restrict_users()
    host.set_search_domain(plan.dns_zone)
    queue = _queue(plan, identity.queue)
    if interfaces := plan.lustre_efa(queue, identity.zone_id):
        host.set_up_lustre_efa(interfaces, tuple(Path(system.mount) for system in plan.lustre))
    mounts = mount_shared(plan, deployed, host)
    host.sync_users(plan.access)
    start_directory(plan, host, secrets, root)
    if not deployed.home:
        make_homes(plan.access, host.make_home)
    worker = slurmd(plan.image_of(queue).slurm_sbin, mounts)
    host.write_units((munge(), credentials(), worker, watcher()))
    install_key(await_munge_key(secrets, deployed.munge_secret), root)
    host.start(munge())
    host.start(credentials())
    expected = expected_of(plan, identity.queue, identity.zone_id)
    if expected.gpus:
        host.enable_gpu_persistence()
    check_boot(expected, probe)
    if queue.nvme_mount:
        host.mount_nvme(Path(queue.nvme_mount))
    compile_containers(plan, node_packages(plan, queue), host, queue)
    options = ("--conf-server", f"{plan.head.address}:{_CONTROLLER_PORT}", "-N", identity.node)
    host.start(worker, options)
    host.requeue_at_shutdown(identity.node)
    host.start(watcher())
    log.info("boot %s of cluster %s: started munge and slurmd", identity.node, plan.name)


def mount_shared(plan: ClusterPlan, deployed: Deployed, host: Host) -> tuple[str, ...]:
    """Mount the file systems that all machines of the cluster share. Returns where."""
    mounts: list[str] = []
    if deployed.home:
        host.mount_home(deployed.home, HOME)
        mounts.append(str(HOME))
    for system in plan.lustre:
        made = deployed.lustre[system.name]
        host.mount_lustre(made.dns_name, made.mount_name, Path(system.mount))
        mounts.append(system.mount)
    return tuple(mounts)


def install_key(key: bytes, root: Path) -> None:
    """Install the munge key where munged reads it."""
    install((Placement(path="/etc/munge/munge.key", content=key, mode=0o400, owner="munge"),), root)


def _read(store: ManifestStore, role: Role, wait: Callable[[float], None]) -> Mapping[str, bytes]:
    """The files of the machine. An upload that is in progress ends within seconds."""
    for left in reversed(range(_READS)):
        manifest = store.manifest()
        try:
            return store.read(manifest, (name for name in manifest.files if is_needed(name, role)))
        except IncompleteUpload:
            if not left:
                raise
            wait(_READ_STEP_S)
    raise AssertionError("the last read returns or raises")


def _packages(plan: ClusterPlan, role: Role, queue: str | None) -> tuple[Package, ...]:
    if queue:
        return node_packages(plan, _queue(plan, queue))
    return login_packages(plan) if role is Role.LOGIN else head_packages(plan)


def _queue(plan: ClusterPlan, name: str) -> QueuePlan:
    return next(known for known in plan.queues if known.name == name)


def _records(files: Mapping[str, bytes]) -> tuple[ClusterPlan, Deployed]:
    for name in ("cluster.json", "deployed.json"):
        if name not in files:
            raise BootError(f"{name} is missing below the cluster's prefix - run `corral up`, which writes it")
    try:
        plan = from_json(ClusterPlan, files["cluster.json"].decode())
        return plan, from_json(Deployed, files["deployed.json"].decode())
    except ValueError as error:
        raise BootError(f"this agent cannot read the cluster's records: {error}") from error
