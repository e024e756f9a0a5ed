"""The commands that give a machine the accounts of the cluster's people, and lock those of people who were removed.

Accounts are never deleted: their files keep a name, and nobody else gets their id. Pure: `sync` reads and acts.
Sources: useradd(8), usermod(8), groupadd(8) of Debian's passwd; shadow(5), "account expiration date"; sshd_config(5),
AuthorizedKeysFile: sshd and PAM refuse an expired account whatever its keys are.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from corral.agent.user_rights import entries
from corral.model.users import HOMES, USERS_GROUP, AccessPlan, GroupPlan, UserPlan

_SHELL, _NO_SHELL = "/bin/bash", "/usr/sbin/nologin"
_EXPIRED = "1"  # the day after the epoch
_ENDING = "2"  # expired as well, but the person may still have processes: whoever finds it tries again
Command = tuple[str, ...]


class AccountAction(StrEnum):
    """What happens to an account."""

    ADD = "add"
    CHANGE = "change"
    LOCK = "lock"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountFiles:
    """The texts of /etc/passwd, /etc/group and /etc/shadow."""

    passwd: str
    group: str
    shadow: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountChange:
    """A change of one account, or of a group. `uid`: of the account, 0 for a group. `reason`: why it is refused.

    `afterwards`: once the person has no process. `moves_home`: usermod refuses that while they have some (usermod(8),
    "CAVEATS").
    """

    action: AccountAction
    name: str
    uid: int = 0
    commands: tuple[Command, ...] = ()
    afterwards: tuple[Command, ...] = ()
    moves_home: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Account:
    """An account of the machine. `groups`: the supplementary ones. `locked`: how it has expired, if by corral."""

    uid: int
    home: str
    groups: frozenset[str]
    locked: str


def account_changes(access: AccessPlan, files: AccountFiles, admin_homes: str = HOMES) -> Iterator[AccountChange]:
    """Yield the changes of a machine with these files, in the order in which they must be made.

    `admin_homes`: the directory with the homes of administrators.
    """
    accounts, groups = _accounts(files), _groups(files.group)
    if access.users and USERS_GROUP not in groups:
        yield AccountChange(
            action=AccountAction.ADD, name=USERS_GROUP, commands=(("groupadd", "--system", USERS_GROUP),)
        )
    refused = frozenset[str]()
    for group in access.groups:
        if change := _group_change(group, groups):
            if change.action is AccountAction.REFUSE:
                refused |= {group.name}
            yield change
    for user in access.users:
        if change := _user_change(user, accounts, groups, refused, admin_homes if user.admin else HOMES):
            yield change
    declared = {user.name for user in access.users}
    for name, account in accounts.items():
        if USERS_GROUP in account.groups and name not in declared and account.locked != _EXPIRED:
            yield AccountChange(
                action=AccountAction.LOCK,
                name=name,
                uid=account.uid,
                commands=(_usermod(name, "--expiredate", _ENDING, "--shell", _NO_SHELL, "--groups", USERS_GROUP),),
                afterwards=(_usermod(name, "--expiredate", _EXPIRED),),
            )


def _group_change(group: GroupPlan, groups: Mapping[str, int]) -> AccountChange | None:
    if groups.get(group.name) == group.gid:
        return None
    if problem := _id_problem(group.name, group.gid, groups, "group"):
        return _refused(group.name, problem)
    known = group.name in groups
    command = "groupmod" if known else "groupadd"
    return AccountChange(
        action=AccountAction.CHANGE if known else AccountAction.ADD,
        name=group.name,
        commands=((command, "--gid", str(group.gid), group.name),),
    )


def _user_change(
    user: UserPlan, accounts: Mapping[str, _Account], groups: Mapping[str, int], refused: frozenset[str], homes: str
) -> AccountChange | None:
    account = accounts.get(user.name)
    if account and USERS_GROUP not in account.groups:
        return _refused(user.name, "the machine's system has a user of this name")
    uids = {name: one.uid for name, one in accounts.items()}
    for known, kind in ((uids, "user"), (groups, "group")):
        if problem := _id_problem(user.name, user.uid, known, kind):
            return _refused(user.name, problem)
    member_of = ",".join((USERS_GROUP, *(name for name in user.groups if name not in refused)))
    uid, home = str(user.uid), f"{homes}/{user.name}"
    commands: list[Command] = []
    if groups.get(user.name) != user.uid:
        commands.append(("groupmod" if user.name in groups else "groupadd", "--gid", uid, user.name))
    if account is None:
        own = ("--uid", uid, "--gid", uid, "--groups", member_of, "--password", "*", "--shell", _SHELL)
        commands.append(("useradd", "--no-log-init", *own, "--no-create-home", "--home-dir", home, user.name))
    elif account != _Account(uid=user.uid, home=home, groups=frozenset(member_of.split(",")), locked=""):
        own = ("--uid", uid, "--gid", uid, "--groups", member_of, "--shell", _SHELL, "--expiredate", "")
        commands.append(_usermod(user.name, *own, *(("--home", home) if account.home != home else ())))
    if not commands:
        return None
    action = AccountAction.CHANGE if account and not account.locked else AccountAction.ADD
    moves_home = account is not None and account.home != home
    return AccountChange(action=action, name=user.name, uid=user.uid, commands=tuple(commands), moves_home=moves_home)


def _id_problem(name: str, number: int, known: Mapping[str, int], kind: str) -> str:
    owner = next((other for other, held in known.items() if held == number and other != name), None)
    return f"its id {number} is that of the {kind} {owner} on this machine" if owner else ""


def _refused(name: str, reason: str) -> AccountChange:
    return AccountChange(action=AccountAction.REFUSE, name=name, reason=reason)


def _usermod(name: str, *options: str) -> Command:
    return ("usermod", *options, name)


def _accounts(files: AccountFiles) -> Mapping[str, _Account]:
    expiry = {fields[0]: fields[7] for fields in entries(files.shadow, 9)}
    members = [(fields[0], frozenset(fields[3].split(","))) for fields in entries(files.group, 4)]
    return {
        name: _Account(
            uid=int(uid),
            home=home,
            groups=frozenset(group for group, people in members if name in people),
            locked=held if (held := expiry.get(name, "")) in (_ENDING, _EXPIRED) else "",
        )
        for name, _, uid, _, _, home, _ in entries(files.passwd, 7)
        if uid.isdecimal()  # not a line of NIS
    }


def _groups(text: str) -> Mapping[str, int]:
    return {fields[0]: int(fields[2]) for fields in entries(text, 4) if fields[2].isdecimal()}
