"""Follow the cluster's configuration on a login node: what a later `corral up` wrote is there within half a minute.

Slurm's commands read their files at each start, so nothing but the agent's own daemons ever restarts. Before sackd of
24.05 nothing of Slurm keeps the files of a machine without slurmd up to date.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from corral.agent.config.apply_journal import HOME, is_renewed, renewed_mark
from corral.agent.config.file_placements import CONTAINERS, is_needed, placements_for
from corral.agent.config.signed_manifest import remember_version
from corral.agent.config_store import ManifestStore
from corral.agent.containers import compile_containers
from corral.agent.directory import directory_reads, stop_directory
from corral.agent.events import EventLog
from corral.agent.file_install import install
from corral.agent.host.base import Host, credentials
from corral.agent.host.packages import login_packages
from corral.agent.ssh import ssh_client, sshd_reads
from corral.agent.users.sync import log_changes, remove_keys, require_done
from corral.model.cluster import ClusterPlan
from corral.model.enums import Role
from corral.model.serialization import from_json

POLL_EVERY_S = 30.0

log = logging.getLogger("corral.agent")


@dataclass(kw_only=True)
class FollowedConfig:
    """`tag`: the version of the manifest in the bucket. `store`: of its files, which believes no older manifest again.

    `update`: updates the agent, and returns whether its code has changed. `restart`: starts this process again.
    `sync_directory`: lets SSSD follow the plan. `sync_host_key`: installs sshd's key, and returns whether it is new.
    """

    tag: Callable[[], str]
    store: Callable[[], ManifestStore]
    update: Callable[[ManifestStore], bool]
    restart: Callable[[], object]
    sync_directory: Callable[[ClusterPlan], object]
    sync_host_key: Callable[[ClusterPlan], bool]
    host: Host
    journal: EventLog
    root: Path = Path("/")
    _seen: str | None = None
    _unfinished: tuple[str, ...] = ()

    def poll(self) -> None:
        """Install what has changed since the last call. Raises AgentError; the next call repeats it."""
        if (tag := self.tag()) == self._seen:
            return
        store, home = self.store(), self.root / HOME.relative_to("/")
        if self.update(store) or is_renewed(home):
            self.host.restart(credentials())
            renewed_mark(home).unlink(missing_ok=True)
            self.restart()  # only the newer agent can read the newer files
            return
        self._install(store)
        self._seen = tag

    def _install(self, store: ManifestStore) -> None:
        manifest = store.manifest()
        files = store.read(manifest, (name for name in manifest.files if is_needed(name, Role.LOGIN)))
        remember_version(manifest.version, self.root)
        plan = from_json(ClusterPlan, files["cluster.json"].decode())
        installed = install((*placements_for(files, Role.LOGIN, None), *ssh_client(plan)), self.root)
        if installed:
            log.info("install: %s", ", ".join(installed))
        changed = self._unfinished = (*self._unfinished, *installed)  # what follows a file may have failed before
        if sshd_reads(changed):
            self.host.reload_sshd()
        remove_keys(plan.access, self.root)
        changes = self.host.sync_users(plan.access)
        log_changes(changes, self.journal)
        if directory_reads(changed):
            self.sync_directory(plan)
        stop_directory(plan, self.host, self.root)
        self.host.limit_people()
        if any(path.startswith(f"{CONTAINERS}/") for path in changed):
            compile_containers(plan, login_packages(plan), self.host)
        if self.sync_host_key(plan):  # last: Secrets Manager does not hold up what locks somebody
            self.host.reload_sshd()
        self._unfinished = ()
        require_done(changes)
