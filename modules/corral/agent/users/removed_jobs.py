"""Cancel the jobs of people who were removed, on the head.

The state volume knows everybody who ever was: a head that replaces another has no account of somebody who is gone.
"""

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from corral.agent.file_install import Placement, install
from corral.model.users import AccessPlan, RemovedJobs

KNOWN = Path("/var/lib/corral/users.json")  # on the state volume: the ids of all people so far, by name
POLL_EVERY_S = 30.0
# By the id of the job, because scancel accepts no user whom the machine does not know (Slurm, uid_from_string).
_JOBS = ("squeue", "--all", "--array", "--noheader", "--format=%U %T %i")
_AT_ONCE = 500  # ids in a command line
_WAITS = "PENDING"

log = logging.getLogger("corral.agent")
Run = Callable[[Sequence[str]], str]


def remember_people(access: AccessPlan, root: Path = Path("/"), file: Path = KNOWN) -> None:
    """Remember these people on the state volume."""
    held = known_people(root, file)
    new = {**held, **{user.name: user.uid for user in access.users}}
    if new != held:
        install((Placement(path=str(file), content=f"{json.dumps(new, sort_keys=True)}\n".encode()),), root)


def known_people(root: Path = Path("/"), file: Path = KNOWN) -> Mapping[str, int]:
    """The ids of all people so far, by name."""
    path = root / file.relative_to("/")
    held: Mapping[str, int] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return held


def jobs_to_cancel(jobs: str, removed: Collection[int], kind: RemovedJobs) -> tuple[str, ...]:
    """The ids of these people's jobs that end: the waiting ones, or all. `jobs`: uid, state and id a line."""
    rows = (line.split() for line in jobs.splitlines() if line.strip())
    ends_all = kind is RemovedJobs.CANCEL
    return tuple(job for uid, state, job in rows if int(uid) in removed and (ends_all or state == _WAITS))


def cancel_jobs(removed: Collection[int], kind: RemovedJobs, run: Run) -> None:
    """Cancel what is to be cancelled of these people's jobs. Raises HostError."""
    ids = jobs_to_cancel(run(_JOBS), removed, kind)
    for start in range(0, len(ids), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        log.info("cancel jobs of people who were removed: %s", " ".join(some))
        run(("scancel", *some))


@dataclass(kw_only=True)
class RemovedJobsTask:
    """A background task of the autoscaler. `access`: the plan of now. `lock`: locks whom an apply could not lock."""

    access: Callable[[], AccessPlan]
    run: Run
    lock: Callable[[AccessPlan], object]
    root: Path = Path("/")

    def __call__(self) -> None:
        """Cancel what is to be cancelled. Raises HostError; queries Slurm only if somebody was removed.

        With a directory `directory_people` does that: it may have somebody whom the environment's file had before.
        """
        known = known_people(self.root)
        access = self.access() if known else AccessPlan()
        removed = set(known.values()) - {user.uid for user in access.users}
        if removed:
            self.lock(access)
        if removed and not access.directory:
            cancel_jobs(removed, access.removed_jobs, self.run)
