"""The people of the directory on the head: a home and an account of Slurm for who is new, no jobs for who has left.

SSSD of a head lists everybody whom the environment's filter lets in. It keeps a person who was once there for as long
as the directory is away, so somebody is gone only once the directory has answered without them. What a head has seen is
on its root disk, as SSSD's memory is: a head that replaces another takes nobody for gone whom it never saw.
"""

from __future__ import annotations

import json
import logging
import pwd
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from corral.agent.errors import AgentError
from corral.agent.events import Event, EventLog
from corral.agent.file_install import Placement, install
from corral.agent.user_rights import entries
from corral.agent.users.removed_jobs import cancel_jobs
from corral.agent.users.sync import AccountsError, end_each, end_processes
from corral.model.cluster import ClusterPlan
from corral.model.users import ADMIN_HOMES, HOMES, DirectoryPlan

POLL_EVERY_S = 60.0
SEEN = "/opt/corral/directory-people.json"

log = logging.getLogger("corral.agent")


def people_of(directory: DirectoryPlan, passwd: Iterable[pwd.struct_passwd], own: Collection[str]) -> Mapping[str, int]:
    """The ids of the directory's people by name. `own`: names in the machine's own file, which come first.

    A name that is no name of a home is nobody's.
    """
    return {
        one.pw_name: one.pw_uid
        for one in passwd
        if directory.min_id <= one.pw_uid <= directory.max_id
        and one.pw_name not in own
        and one.pw_dir in {f"{homes}/{one.pw_name}" for homes in (HOMES, ADMIN_HOMES)}
        and "/" not in one.pw_name
        and not one.pw_name.startswith(".")
    }


@dataclass(kw_only=True)
class DirectoryPeopleTask:
    """A background task of the autoscaler. `plan`: that of now. `passwd`, `is_known`: ask SSSD, by all and by one name.

    `make_home`, `add_accounts`: `Host.make_home` and SlurmAccounts.sync. `end`: ends somebody's processes on the head.
    """

    plan: Callable[[], ClusterPlan]
    run: Callable[[Sequence[str]], str]
    make_home: Callable[[str], object]
    add_accounts: Callable[[ClusterPlan], object]
    journal: EventLog
    passwd: Callable[[], Iterable[pwd.struct_passwd]] = pwd.getpwall
    is_known: Callable[[str], bool] = lambda name: _is_known(name)
    end: Callable[[int], object] = end_processes
    root: Path = Path("/")
    _missing: frozenset[str] = frozenset()

    def __call__(self) -> None:
        """Make what is missing, end what is left. Raises AgentError."""
        plan = self.plan()
        if (directory := plan.access.directory) is None:
            return
        file = self.root / "etc/passwd"
        own = {fields[0] for fields in entries(file.read_text(encoding="utf-8", errors="replace"), 7)}
        seen = self._seen()
        listed = people_of(directory, self.passwd(), own)
        # A list has also those whom SSSD remembers; by name it asks the directory once they are too old.
        found = {name: uid for name, uid in {**seen, **listed}.items() if self.is_known(name)}
        if not found:
            return  # SSSD does not answer
        self._make_homes(found, plan)
        if new := sorted(found.keys() - seen.keys()):
            self.add_accounts(plan)
            for name in new:
                self.journal.log_event(Event.USER_ADDED, f"{name}, uid {found[name]}", user=name)
        missing = frozenset(seen.keys() - found.keys())
        gone = missing & self._missing  # twice in a row: SSSD may have been restarting
        self._missing = missing - gone
        failed = end_each(sorted(gone), lambda name: self._remove(name, seen[name], plan))
        self._missing |= failed.keys()  # what fails is repeated
        self._remember({**found, **{name: seen[name] for name in self._missing}})
        if failed:
            raise AccountsError("; ".join(f"{name}: {error}" for name, error in failed.items()))

    def _make_homes(self, people: Mapping[str, int], plan: ClusterPlan) -> None:
        homes = [self.root / directory.lstrip("/") for directory in (HOMES, plan.admin_homes)]
        for name in sorted(people):
            if not all((directory / name).exists() for directory in homes):
                try:
                    self.make_home(name)
                except AgentError as error:
                    log.error("home of %s: %s", name, error)

    def _remove(self, name: str, uid: int, plan: ClusterPlan) -> None:
        try:
            self.end(uid)
        finally:
            cancel_jobs(frozenset({uid}), plan.access.removed_jobs, self.run)
        self.journal.log_event(Event.USER_REMOVED, f"{name}, uid {uid}", user=name)

    def _seen(self) -> Mapping[str, int]:
        with suppress(OSError, ValueError):
            held: Mapping[str, int] = json.loads((self.root / SEEN.lstrip("/")).read_text(encoding="utf-8"))
            return held
        return {}

    def _remember(self, people: Mapping[str, int]) -> None:
        install((Placement(path=SEEN, content=f"{json.dumps(people, sort_keys=True)}\n".encode()),), self.root)


def _is_known(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
