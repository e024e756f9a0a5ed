"""Give this machine the accounts of the cluster's people, and lock those of people who were removed.

A head also has their keys and makes their homes. Idempotent: a boot, an apply and a node's watcher call it.
"""

import logging
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from corral.agent.errors import AgentError
from corral.agent.events import Event, EventLog
from corral.agent.step_daemon import is_step_daemon, proc_lines, users_of
from corral.agent.user_rights import KEYS
from corral.agent.users.accounts import AccountAction, AccountChange, AccountFiles, account_changes
from corral.agent.users.removed_jobs import remember_people
from corral.agent.users.signal_all import signal_all
from corral.model.users import HOMES, AccessPlan

_KILLS = 10  # a process may fork while it is looked for
_FREE_KILLS = 5  # before everything of that person is stopped, also jobs
_BETWEEN_S = 0.2  # a process may need a while to end
_PEOPLE = "/user.slice/"  # below it systemd lets people make control groups of their own, of any name
_EVENTS = {AccountAction.ADD: Event.USER_ADDED, AccountAction.LOCK: Event.USER_REMOVED}

log = logging.getLogger("corral.agent")
Run = Callable[[Sequence[str]], str]
Person = TypeVar("Person", int, str)


class AccountsError(AgentError):
    """A command that changes an account has failed, or a person still has processes."""


def sync_accounts(
    access: AccessPlan, run: Run, root: Path = Path("/"), *, admin_homes: str = HOMES
) -> tuple[AccountChange, ...]:
    """Change the accounts of this machine. Returns the changes; one that failed is refused, with the error."""
    changes = tuple(account_changes(access, _account_files(root), admin_homes))
    return tuple(_done(change, run, root) for change in changes)


def lock_removed(access: AccessPlan, run: Run, journal: EventLog, root: Path = Path("/")) -> None:
    """Lock who was removed and is not locked yet: an apply may have failed to. What fails is repeated."""
    changes = account_changes(access, _account_files(root))
    done = [_done(change, run, root) for change in changes if change.action is AccountAction.LOCK]
    log_changes((change for change in done if change.action is AccountAction.LOCK), journal)


def require_done(changes: Iterable[AccountChange]) -> None:
    """Raise AccountsError if a command failed or a process remains, for who repeats the changes later.

    A person who is refused for their name or id is no failure, and has no commands.
    """
    failed = [change for change in changes if change.action is AccountAction.REFUSE and change.commands]
    if failed:
        raise AccountsError("; ".join(f"{change.name}: {change.reason}" for change in failed))


def record_changes(changes: Iterable[AccountChange], access: AccessPlan, journal: EventLog, root: Path) -> None:
    """What a head does after its accounts have changed: log events, remember everybody, remove keys of others."""
    log_changes(changes, journal)
    remember_people(access, root)
    remove_keys(access, root)


def remove_keys(access: AccessPlan, root: Path = Path("/")) -> None:
    """Remove the keys of people who were removed from where sshd of a head reads them."""
    directory = root / KEYS.lstrip("/")
    declared = {user.name for user in access.users}
    for file in directory.iterdir() if directory.exists() else ():
        if file.name not in declared:
            file.unlink()


def make_homes(access: AccessPlan, make: Callable[[str], object]) -> None:
    """Make the homes that are missing. One that fails is logged: the others are made all the same."""
    for user in access.users:
        try:
            make(user.name)
        except AgentError as error:
            log.error("home of %s: %s", user.name, error)


def log_changes(changes: Iterable[AccountChange], journal: EventLog) -> None:
    """Log an event for each person who was added, removed or refused."""
    for change in changes:
        if change.action is AccountAction.REFUSE:
            journal.log_event(Event.USER_REFUSED, f"{change.name}: {change.reason}", user=change.name)
        elif change.uid and change.action in _EVENTS:
            journal.log_event(_EVENTS[change.action], f"{change.name}, uid {change.uid}", user=change.name)


def _account_files(root: Path) -> AccountFiles:
    passwd, group, shadow = (_read(root / "etc" / name) for name in ("passwd", "group", "shadow"))
    return AccountFiles(passwd=passwd, group=group, shadow=shadow)


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""


def _done(change: AccountChange, run: Run, root: Path) -> AccountChange:
    try:
        if change.moves_home:
            end_processes(change.uid, root / "proc")
        for command in change.commands:
            run(command)
        if change.action is AccountAction.LOCK:
            end_processes(change.uid, root / "proc")
        for command in change.afterwards:
            run(command)
    except AgentError as error:
        change = replace(change, action=AccountAction.REFUSE, reason=str(error))
    level = logging.ERROR if change.action is AccountAction.REFUSE else logging.INFO
    log.log(level, "account %s: %s%s", change.name, change.action, f", {change.reason}" if change.reason else "")
    return change


def end_processes(
    uid: int,
    processes: Path = Path("/proc"),
    kill: Callable[[int, int], None] = os.kill,
    stop_all: Callable[[int, int], None] = signal_all,
) -> bool:
    """Kill a person's processes but those of jobs, which Slurm ends. Returns whether there were some.

    Raises AgentError if some remain. Who forks and ends again and again has another process than the one that was
    found, each time: what is stopped does not fork.
    """
    had_some, known = False, frozenset[int]()
    for count in range(_KILLS):
        stops = count >= _FREE_KILLS
        with _stopped(uid, processes, kill, stop_all) if stops else nullcontext():
            look = _look(uid, processes)
            for process in look.found:
                with suppress(ProcessLookupError):
                    kill(process, signal.SIGKILL)
        had_some |= bool(look.found)
        if not look.found and not look.unread and (stops or look.ended <= known):
            return had_some
        known = look.ended
        time.sleep(_BETWEEN_S if look.found else 0)
    raise AccountsError(f"uid {uid} still has processes: {', '.join(map(str, (*look.found, *look.unread)[:_KILLS]))}")


def end_each(removed: Iterable[Person], end: Callable[[Person], object]) -> Mapping[Person, str]:
    """End what each of these people runs. Returns the errors by person: a failure of one keeps nobody from the rest."""
    failed = {}
    for person in removed:
        try:
            end(person)
        except AgentError as error:
            failed[person] = str(error)
    return failed


@contextmanager
def _stopped(
    uid: int, processes: Path, kill: Callable[[int, int], None], stop_all: Callable[[int, int], None]
) -> Iterator[None]:
    """Everything of that person stands still meanwhile, also jobs. What Slurm had suspended before stays so."""
    before = frozenset(_standing(uid, processes))
    try:
        stop_all(uid, signal.SIGSTOP)
        yield
    finally:
        for process in _standing(uid, processes):
            if process not in before:
                with suppress(ProcessLookupError):
                    kill(process, signal.SIGCONT)


def _standing(uid: int, processes: Path) -> Iterator[int]:
    """The processes that are stopped and have this id in any way, as a program with the rights of its owner."""
    for entry in processes.iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and str(uid) in users_of(entry) and _stat(entry)[0] == "T":
                yield int(entry.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """A person's processes outside of jobs; those that ended before they were read.

    `ended`: numbers without a process, of whomever: one may have forked. The kernel lists numbers upwards, and a fork
    has the next one: who was not found while nothing ended has nothing.
    """

    found: tuple[int, ...]
    unread: tuple[int, ...]
    ended: frozenset[int]


def _look(uid: int, processes: Path) -> _Look:
    found, unread, ended = [], [], []
    for entry in processes.iterdir():
        if not entry.name.isdigit():
            continue
        process, owner = int(entry.name), _owner(entry)
        try:
            if owner is None or (owner == uid and _is_dead(entry)):
                ended.append(process)
            elif owner == uid and not _is_of_job(entry, processes):
                found.append(process)
        except OSError:
            unread.append(process)
    return _Look(found=tuple(found), unread=tuple(unread), ended=frozenset(ended))


def _owner(process: Path) -> int | None:
    try:
        return process.stat().st_uid
    except OSError:  # it has ended
        return None


def _is_dead(process: Path) -> bool:
    """Whether its number alone is left, and not only its first thread has ended. Raises OSError."""
    stat = _stat(process)
    return stat[0] in "ZX" and int(stat[17]) <= 1  # num_threads (proc(5))


def _is_of_job(process: Path, processes: Path) -> bool:
    """True if the process is in a job's cgroup, or descends from a step's daemon. Neither is a matter of names alone.

    People name their programs and control groups, and who was removed must not keep a process by such a name. Raises
    OSError.
    """
    groups = (line.split(":", 2)[2] for line in proc_lines(process / "cgroup"))
    if any("/job_" in group and not group.startswith(_PEOPLE) for group in groups):
        return True
    while process.name != "0":
        if is_step_daemon(process):
            return True
        process = processes / _stat(process)[1]
    return False


def _stat(process: Path) -> list[str]:
    """The fields after "pid (comm)", from the state and the parent on: a name may contain spaces and brackets."""
    return (process / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
