"""The first thing that a machine does with the agent: it fetches its cluster's files and installs them.

It does not start the daemons yet; it says which ones the machine is made for.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from corral.agent.errors import AgentError
from corral.agent.install import install
from corral.agent.places import is_needed, places
from corral.agent.store import Store
from corral.model.cluster import ClusterPlan
from corral.model.deployed import Deployed
from corral.model.jsons import from_json
from corral.model.markets import Role

log = logging.getLogger("corral.agent")

DAEMONS: Mapping[Role, tuple[str, ...]] = {Role.HEAD: ("munge", "slurmctld"), Role.COMPUTE: ("munge", "slurmd")}


class BootError(AgentError):
    """A machine that cannot become what it was launched for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Booted:
    """What `boot` did: the files that it wrote, and the daemons that the machine is made for."""

    changed: tuple[str, ...]
    daemons: tuple[str, ...]


def boot(store: Store, role: Role, queue: str | None = None, *, root: Path = Path("/")) -> Booted:
    """What was done to make this machine one of the cluster. Doing it again changes nothing.

    Raises BootError where the store does not hold a whole cluster, or not this queue.
    """
    files = {name: store.read(name) for name in store.names() if is_needed(name, role)}
    plan = _plan(files)
    if role is Role.COMPUTE and queue not in {known.name for known in plan.queues}:
        names = ", ".join(known.name for known in plan.queues)
        raise BootError(f"cluster {plan.name} has no queue {queue!r} - it has {names}")
    changed = install(places(files, role, queue), root)
    log.info("install %s: %s", role, ", ".join(changed) or "nothing has changed")
    log.info("boot %s of cluster %s: files are in place, daemons not started: %s", role, plan.name, _daemons(role))
    return Booted(changed=changed, daemons=DAEMONS[role])


def _plan(files: Mapping[str, bytes]) -> ClusterPlan:
    for name in ("cluster.json", "deployed.json"):
        if name not in files:
            raise BootError(f"{name} is missing below the cluster's prefix - `corral up` writes it, last of all files")
    try:
        from_json(Deployed, files["deployed.json"].decode())
        return from_json(ClusterPlan, files["cluster.json"].decode())
    except ValueError as error:
        raise BootError(f"the cluster's records are not those of this agent: {error}") from error


def _daemons(role: Role) -> str:
    return ", ".join(DAEMONS[role])
