"""On login nodes and nodes, end what somebody runs outside of jobs who has left the directory.

SSSD lists nobody there, and knows those who have logged in for as long as the directory is away. So somebody has left
who has a home and whom it does not find, although it finds others: an SSSD that finds nobody proves nothing.
"""

import pwd
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from corral.agent.events import Event, EventLog
from corral.agent.user_rights import entries
from corral.agent.users.sync import AccountsError, end_each, end_processes
from corral.model.cluster import ClusterPlan
from corral.model.users import HOMES, DirectoryPlan

POLL_EVERY_S = 60.0


@dataclass(kw_only=True)
class DirectorySessionsTask:
    """A background task. `plan`: that of now. `is_known`: whether SSSD finds an id.

    `end`: ends somebody's processes but those of jobs, which the head cancels; returns whether there were some, and
    raises AgentError if some remain.
    """

    plan: Callable[[], ClusterPlan]
    journal: EventLog
    is_known: Callable[[int], bool] = lambda uid: _is_known(uid)
    end: Callable[[int], bool] = end_processes
    root: Path = Path("/")
    _missing: frozenset[int] = frozenset()

    def __call__(self) -> None:
        """End the processes of who is missing twice in a row: SSSD may have been restarting.

        Raises AccountsError if some remain; the next call repeats it.
        """
        if (directory := self.plan().access.directory) is None:
            return
        here = {uid for _, uid in _owned(self.root / "proc") if directory.min_id <= uid <= directory.max_id}
        missing = frozenset(uid for uid in here if not self.is_known(uid))
        # Shared homes are looked at only for somebody who is missing.
        people = self._people(directory) if missing else {}
        missing &= people.keys()
        if missing and not any(self.is_known(uid) for uid in sorted(people.keys() - missing)):
            return
        gone = missing & self._missing
        self._missing = missing - gone
        failed = end_each(sorted(gone), lambda uid: self._end(uid, people[uid]))
        self._missing |= failed.keys()
        if failed:
            raise AccountsError("; ".join(f"{people[uid]}: {error}" for uid, error in failed.items()))

    def _end(self, uid: int, name: str) -> None:
        if self.end(uid):
            self.journal.log_event(Event.USER_REMOVED, f"{name}, uid {uid}", user=name)

    def _people(self, directory: DirectoryPlan) -> Mapping[int, str]:
        """The names of the homes by the ids of their owners, which the head has made for people of the directory.

        An id without a home may be one of a container.
        """
        passwd = (self.root / "etc/passwd").read_text(encoding="utf-8", errors="replace")
        own = {fields[2] for fields in entries(passwd, 7)}
        homes = {uid: name for name, uid in _owned(self.root / HOMES.lstrip("/")) if str(uid) not in own}
        return {uid: name for uid, name in homes.items() if directory.min_id <= uid <= directory.max_id}


def _owned(directory: Path) -> Iterator[tuple[str, int]]:
    """The entries of a directory with their owners."""
    for entry in directory.iterdir():
        with suppress(OSError):  # a process that has ended
            yield entry.name, entry.lstat().st_uid


def _is_known(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True
