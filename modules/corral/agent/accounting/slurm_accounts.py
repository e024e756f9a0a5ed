"""Make slurmdbd's accounts, QOS and users those that the environment declares; keep what an administrator added.

What corral made has the organization (of an account) or the description (of a QOS) `corral`. Only that is ever deleted.
Pure, except for `SlurmAccounts`. Tried with sacctmgr 22.05: it deletes an account together with the associations
of its users, and takes -1 for "no limit".
"""

import json
import pwd
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from corral.agent.accounting.backup import STATE_DIR
from corral.agent.accounting.waits import await_slurmdbd, slurmdbd_listens
from corral.agent.events import Event, EventLog
from corral.agent.host.base import HostError
from corral.model.accounts import EVERYBODY, NORMAL_QOS, AccountPlan, AccountsPlan, QosPlan
from corral.model.cluster import ClusterPlan

_OURS = "corral"
_ROOT = "root"
_NO_LIMIT = "-1"
_PEOPLE = range(1000, 60000)  # user ids of people (Debian's login.defs)
_QOS = "format=name,priority,flags,grptres,grptresmins,maxtresperuser,maxjobsperuser,gracetime,preempt,description"
_MINUTES_PER_HOUR = 60
Run = Callable[[Sequence[str]], str]
Limits = Mapping[str, str]
_Allowed = tuple[tuple[str, ...], str]  # the QOS of an account, sorted, and its default


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentAccount:
    """An account of slurmdbd. `qos`: what its jobs may use, sorted. `is_ours`: whether corral made it."""

    parent: str
    shares: str
    qos: tuple[str, ...]
    default_qos: str
    is_ours: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """What slurmdbd has of this cluster. `qos`: the settings of each; `users`: the accounts of each.

    `default_accounts`: of each user, empty without one.
    """

    accounts: Mapping[str, PresentAccount]
    qos: Mapping[str, Limits]
    users: Mapping[str, frozenset[str]]
    default_accounts: Mapping[str, str]


class SlurmAccounts:
    """slurmdbd's accounts on a head.

    `state_dir`: on the state volume, where the account of each person is remembered, so that somebody who changes
    accounts leaves the former one. `listens`: returns whether slurmdbd accepts connections.
    """

    def __init__(
        self,
        run: Run,
        journal: EventLog | None = None,
        *,
        state_dir: Path = STATE_DIR,
        listens: Callable[[], bool] = slurmdbd_listens,
    ) -> None:
        self._run = run
        self._journal = journal or EventLog(None)
        self._assigned = state_dir / "assigned-accounts.json"
        self._listens = listens

    def sync(self, plan: ClusterPlan, *, qos: bool = True) -> None:
        """Bring slurmdbd to the plan. Raises HostError. `qos`: False to leave QOS alone before slurmctld runs."""
        if not plan.accounts.accounts:
            return
        await_slurmdbd(self._listens)
        if plan.name not in self._show("cluster", "format=cluster").split():
            self._run(("sacctmgr", "--immediate", "add", "cluster", plan.name))
        former = _read(self._assigned)
        present = self._present(plan.name)
        wanted = people_accounts(plan, pwd.getpwall(), present.users)
        made = tuple(changes(plan.name, plan.accounts, wanted, former, present, qos=qos))
        for words in made:
            self._run(("sacctmgr", "--immediate", *words))
        if qos:
            self._remove(plan, self._present(plan.name) if made else present)
            self._assigned.write_text(json.dumps(dict(sorted(wanted.items()))), encoding="utf-8")
        if made:
            kept = added_by_hand(plan.accounts, wanted, self._present(plan.name))
            others = f"; added by hand and kept: {', '.join(kept)}" if kept else ""
            text = f"{len(made)} changes of Slurm's accounts{others}"
            self._journal.log_event(Event.ACCOUNTS_CHANGED, text, kept=list(kept))

    def _remove(self, plan: ClusterPlan, present: Present) -> None:
        for words in removals(plan.accounts, present):
            try:
                self._run(("sacctmgr", "--immediate", *words))
            except HostError as error:  # it has running jobs; the next change tries again
                self._journal.log_event(Event.ACCOUNTS_REFUSED, f"{words[1]} {words[2]} stays: {error}")

    def _present(self, cluster: str) -> Present:
        association = "format=account,user,parentname,share,qos,defaultqos"
        return parse_present(
            self._show("assoc", f"cluster={cluster}", association),
            self._show("account", "format=account,organization"),
            self._show("qos", _QOS),
            self._show("user", "format=user,defaultaccount"),
        )

    def _show(self, *words: str) -> str:
        return self._run(("sacctmgr", "--noheader", "--parsable2", "show", *words))


def changes(
    cluster: str,
    plan: AccountsPlan,
    wanted: Mapping[str, str],
    former: Mapping[str, str],
    present: Present,
    *,
    qos: bool = True,
) -> Iterator[tuple[str, ...]]:
    """The arguments of sacctmgr that make what is missing, and change what differs: QOS, accounts, then people.

    `former`: the account of each person at the last change. `qos`: False to leave QOS alone.
    """
    for one in plan.qos if qos else ():
        yield from _qos_changes(one, present.qos.get(one.name))
    for one in plan.qos if qos else ():  # now that all are there
        yield from _preemption_changes(one, present.qos.get(one.name))
    root = present.accounts.get(_ROOT)
    allowed: dict[str | None, _Allowed] = {None: (root.qos, root.default_qos) if root else ((), "")}
    for account in plan.accounts:
        inherited = allowed[account.parent]
        own = (tuple(sorted(account.qos)), account.qos[0]) if account.qos else inherited
        allowed[account.name] = own
        there = present.accounts.get(account.name)
        settings = _qos_of_account(account, own, there) if qos else ()
        yield from _account_changes(cluster, account, there, tuple(settings))
    for user, name in sorted(wanted.items()):
        yield from _user_changes(cluster, user, name, former.get(user), present)


def removals(plan: AccountsPlan, present: Present) -> Iterator[tuple[str, ...]]:
    """The arguments of sacctmgr that delete what corral made and the plan lacks; children before their parents.

    An account with users stays: an administrator added them.
    """
    ours = [name for name, one in present.accounts.items() if one.is_ours and name not in plan.names]
    used = {account for accounts in present.users.values() for account in accounts}
    for name in sorted(ours, key=lambda name: (-_depth(name, present), name)):
        if name not in used:
            yield "delete", "account", name
    declared = {qos.name for qos in plan.qos}
    for name, settings in sorted(present.qos.items()):
        if settings["description"] != _OURS or name in declared:
            continue
        if name == NORMAL_QOS:
            yield _former_settings(settings)
        else:
            yield "delete", "qos", name


def added_by_hand(plan: AccountsPlan, wanted: Mapping[str, str], present: Present) -> tuple[str, ...]:
    """What slurmdbd has that neither Slurm nor the plan made: accounts, QOS, and users as `user@account`."""
    declared = {NORMAL_QOS, *(qos.name for qos in plan.qos)}
    users = (
        f"{user}@{account}"
        for user, accounts in present.users.items()
        for account in accounts
        if user != _ROOT and account not in (wanted.get(user), EVERYBODY)
    )
    names = (
        *(name for name in present.accounts if name not in (*plan.names, _ROOT)),
        *(name for name, one in present.qos.items() if name not in declared and one["description"] != _OURS),
        *users,
    )
    return tuple(sorted(names))


def parse_present(accounts: str, owners: str, qos: str, users: str) -> Present:
    """What `sacctmgr --parsable2 show` prints of associations, accounts, QOS and users."""
    keys = _QOS.removeprefix("format=").split(",")
    of_accounts: dict[str, PresentAccount] = {}
    of_users: dict[str, set[str]] = {}
    organizations = dict(_rows(owners))
    for account, user, parent, shares, names, default in _rows(accounts):
        if user:
            of_users.setdefault(user, set()).add(account)
        else:
            of_accounts[account] = PresentAccount(
                parent=parent or _ROOT,
                shares=shares,
                qos=tuple(sorted(name for name in names.split(",") if name)),
                default_qos=default,
                is_ours=organizations.get(account) == _OURS,
            )
    return Present(
        accounts=of_accounts,
        qos={row[0]: _settings(dict(zip(keys, row, strict=True))) for row in _rows(qos)},
        users={user: frozenset(names) for user, names in of_users.items()},
        default_accounts=dict(_rows(users)),
    )


def _settings(row: Limits) -> Limits:
    return {**row, "gracetime": _seconds(row["gracetime"])}


def _rows(output: str) -> Iterator[list[str]]:
    yield from (line.split("|") for line in output.splitlines() if line)


def _qos_changes(qos: QosPlan, present: Limits | None) -> Iterator[tuple[str, ...]]:
    wanted = _qos_settings(qos)
    if present is None:
        values = [f"{key}={value}" for key, value in wanted.items() if value not in ("", _NO_LIMIT)]
        yield "add", "qos", qos.name, *values
        return
    differing = []
    for key, value in wanted.items():
        if key in ("GrpTRES", "GrpTRESMins", "MaxTRESPerUser"):
            value = _tres_difference(value, present[key.lower()])
            differing += [f"{key}={value}"] if value else []
        elif value != (present[key.lower()] or {"Flags": _NO_LIMIT, "MaxJobsPerUser": _NO_LIMIT}.get(key, "")):
            differing.append(f"{key}={value}")
    if differing:
        yield "modify", "qos", qos.name, "set", *differing


def _former_settings(present: Limits) -> tuple[str, ...]:
    """The arguments of sacctmgr that make Slurm's own QOS what it was before somebody declared it."""
    plain = QosPlan(name=NORMAL_QOS)
    made = (*_qos_changes(plain, present), *_preemption_changes(plain, present))
    differing = (setting for words in made for setting in words[4:])
    return ("modify", "qos", NORMAL_QOS, "set", "Description=Normal QOS default", *differing)


def _preemption_changes(qos: QosPlan, present: Limits | None) -> Iterator[tuple[str, ...]]:
    there = {name for name in present["preempt"].split(",") if name} if present else set()
    # Not the whole list: before 24.05.4, a QOS whose list is emptied is itself preempted no more (Slurm's changelog).
    for sign, names in (("+", set(qos.preempts) - there), ("-", there - set(qos.preempts))):
        if names:
            yield "modify", "qos", qos.name, "set", f"preempt{sign}={','.join(sorted(names))}"


def _qos_settings(qos: QosPlan) -> Mapping[str, str]:
    """The settings as sacctmgr takes and prints them."""
    minutes = None if qos.gpu_hours is None else qos.gpu_hours * _MINUTES_PER_HOUR
    return {
        "Description": _OURS,
        "Priority": str(qos.priority),
        # Otherwise the half-life of fair share also forgets what a budget has spent.
        "Flags": "NoDecay" if minutes else _NO_LIMIT,
        "GrpTRES": _tres(cpu=qos.cpus, gpu=qos.gpus),
        "GrpTRESMins": _tres(cpu=None, gpu=minutes),
        "MaxTRESPerUser": _tres(cpu=qos.cpus_per_user, gpu=qos.gpus_per_user),
        "MaxJobsPerUser": _NO_LIMIT if qos.jobs_per_user is None else str(qos.jobs_per_user),
        "GraceTime": str(qos.grace_s),
    }


def _seconds(clock: str) -> str:
    """The seconds of a time that sacctmgr prints, 00:02:00, as it takes them."""
    hours, minutes, seconds = map(int, clock.split(":"))
    return str((hours * 60 + minutes) * 60 + seconds)


def _tres(*, cpu: int | None, gpu: int | None) -> str:
    return ",".join(f"{name}={value}" for name, value in (("cpu", cpu), ("gres/gpu", gpu)) if value is not None)


def _tres_difference(wanted: str, present: str) -> str:
    """What to set so that `present` becomes `wanted`; empty if it is."""
    new, old = (dict(part.split("=", 1) for part in text.split(",") if part) for text in (wanted, present))
    values = {name: new.get(name, _NO_LIMIT) for name in (*new, *old)}
    return ",".join(f"{name}={value}" for name, value in values.items() if old.get(name, _NO_LIMIT) != value)


def _qos_of_account(account: AccountPlan, expected: _Allowed, present: PresentAccount | None) -> Iterator[str]:
    """The settings that let its jobs use these QOS; sacctmgr prints inherited ones like its own."""
    there = (present.qos, present.default_qos) if present else None
    if account.qos and there != expected:
        yield from (f"qos={','.join(account.qos)}", f"defaultqos={account.qos[0]}")
    elif there and there != expected:
        yield from ("qos=", f"defaultqos={_NO_LIMIT}")


def _account_changes(
    cluster: str, account: AccountPlan, present: PresentAccount | None, qos: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    parent, shares = account.parent or _ROOT, str(account.shares)
    where = (account.name, f"cluster={cluster}")
    if present is None:
        yield "add", "account", *where, f"parent={parent}", f"organization={_OURS}", f"fairshare={shares}", *qos
        return
    if not present.is_ours:
        yield "modify", "account", f"name={account.name}", "set", f"organization={_OURS}"
    differing = []
    if present.parent != parent:
        differing.append(f"parent={parent}")
    if present.shares != shares:
        differing.append(f"fairshare={shares}")
    if differing or qos:
        yield "modify", "account", *where, "set", *differing, *qos


def _user_changes(
    cluster: str, user: str, account: str, former: str | None, present: Present
) -> Iterator[tuple[str, ...]]:
    there = present.users.get(user, frozenset())
    if account not in there:
        yield "add", "user", user, f"account={account}", f"cluster={cluster}"
    if present.default_accounts.get(user, account) != account:
        yield "modify", "user", user, f"cluster={cluster}", "set", f"defaultaccount={account}"
    if former is not None and former != account and former in there:
        yield "delete", "user", user, f"account={former}", f"cluster={cluster}"


def _depth(name: str, present: Present) -> int:
    depth = 0
    while name != _ROOT and name in present.accounts:
        name, depth = present.accounts[name].parent, depth + 1
    return depth


def people_accounts(
    plan: ClusterPlan, passwd: Iterable[pwd.struct_passwd], present: Iterable[str]
) -> Mapping[str, str]:
    """The account of each person: as declared; everybody's for a user of the machine who has none yet."""
    known, directory = frozenset(present), plan.access.directory
    more = range(directory.min_id, directory.max_id + 1) if directory else ()
    others = (
        user.pw_name for user in passwd if (user.pw_uid in _PEOPLE or user.pw_uid in more) and user.pw_name not in known
    )
    return {**dict.fromkeys(others, EVERYBODY), **{user.name: user.account for user in plan.access.users}}


def _read(file: Path) -> Mapping[str, str]:
    with suppress(OSError, ValueError):
        found = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found
    return {}
