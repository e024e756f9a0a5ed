"""Lock people who were removed and whom an apply could not lock, on the head: nodes repeat that by themselves.

A rollback would be no way out: it brings back the former configuration, and with it the person who was removed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from corral.agent.events import EventLog
from corral.agent.process_lock import exclusive
from corral.agent.users.accounts import AccountAction, AccountChange
from corral.agent.users.sync import log_changes, planned_changes
from corral.model.cluster import ClusterPlan
from corral.model.users import AccessPlan

POLL_EVERY_S = 30.0


@dataclass(kw_only=True)
class OverdueLocksTask:
    """A background task of the autoscaler.

    `plan`: of now. `sync_users`: that of the host. `applies`: the lock of an apply, which locks people by itself.
    """

    plan: Callable[[], ClusterPlan]
    sync_users: Callable[[AccessPlan, str], tuple[AccountChange, ...]]
    journal: EventLog
    applies: Path
    root: Path = Path("/")

    def __call__(self) -> None:
        """Lock whoever is to be locked. What fails again is logged by `sync`, and was an event of the apply."""
        self.applies.parent.mkdir(parents=True, exist_ok=True)
        with exclusive(self.applies) as is_free:
            plan = self.plan()
            planned = planned_changes(plan.access, self.root, plan.admin_homes) if is_free else ()
            if any(change.action is AccountAction.LOCK for change in planned):
                changes = self.sync_users(plan.access, plan.admin_homes)
                log_changes((one for one in changes if one.action is AccountAction.LOCK), self.journal)
