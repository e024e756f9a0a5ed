"""The people of a cluster, who have the same name, id and groups on each of its machines. In cluster.json.

`users_conf` is how nodes hear of a later `corral up`: slurmctld sends it to them as an include of slurm.conf, whose
lines are comments for Slurm. It has neither keys nor administrators, for whom only the head has use.
Sources: systemd's UIDS-GIDS ("Summary") and the Debian Policy Manual, section 9.2.2, for the range of ids.
"""

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from corral.model.accounts import EVERYBODY

USERS_CONF = "users.conf"
HOMES = "/home"
# On the head's state volume: root of a node writes what is on the shared /home, and would wait there for a sudo.
ADMIN_HOMES = "/var/lib/corral/homes"
USERS_GROUP = "corral-users"  # its members are the accounts that corral manages
# Images' own people are below 2000. useradd counts from 1000, so 10,000 and more stay free for derived ids.
FIRST_ID, FIRST_DERIVED_ID, LAST_ID = 2000, 10_000, 59_999
_HEADER = "# Managed by corral: do not edit. The cluster's people: comments for Slurm, which the agent of nodes reads."
_WORD = "#corral"
DIRECTORY_CA = "/etc/sssd/corral-ca.pem"  # what SSSD compares the directory's certificate with, if the spec has one


class DirectorySchema(StrEnum):
    """How a directory names users and the members of groups, in SSSD's words (sssd-ldap(5), "ldap_schema")."""

    RFC2307 = "rfc2307"
    RFC2307BIS = "rfc2307bis"
    AD = "ad"


class RemovedJobs(StrEnum):
    """What happens to the running jobs of a person who is removed; waiting ones are cancelled."""

    FINISH = "finish"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserPlan:
    """A person. `uid` is also the id of the group of the same name; `groups`: the others, sorted.

    `account`: that of their jobs in Slurm.
    """

    name: str
    uid: int
    groups: tuple[str, ...] = ()
    ssh_keys: tuple[str, ...] = ()
    admin: bool = False
    account: str = EVERYBODY


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlan:
    """A group that people share."""

    name: str
    gid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryPlan:
    """An LDAP directory that people come from, all by TLS.

    `base`, `filter`, `bind_dn`: as LDAP writes them. `admin_group`: empty if nobody is an administrator.
    `bind_secret`: the name of the secret with the password, never its value. `ca`: empty for the system's authorities.
    """

    servers: tuple[str, ...]
    base: str
    filter: str
    schema: DirectorySchema
    bind_dn: str
    bind_secret: str
    admin_group: str = ""
    ca: str = ""
    min_id: int = FIRST_ID
    max_id: int = LAST_ID


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPlan:
    """Who may log in. `ssh_keys`: those of the image's user. `users`, `groups`: by name.

    `shows_jobs`: whether people see each other's jobs. `directory`: where people come from if not from `users`.
    """

    ssh_keys: tuple[str, ...] = ()
    users: tuple[UserPlan, ...] = ()
    groups: tuple[GroupPlan, ...] = ()
    removed_jobs: RemovedJobs = RemovedJobs.FINISH
    shows_jobs: bool = False
    directory: DirectoryPlan | None = None

    @property
    def has_people(self) -> bool:
        """Whether there is anybody but the image's user."""
        return bool(self.users or self.directory)


def derived_id(name: str) -> int:
    """The id of a user or group without a declared one: it depends on the name alone, so nobody's id ever changes."""
    digest = hashlib.sha256(name.encode()).digest()
    return FIRST_DERIVED_ID + int.from_bytes(digest[:8], "big") % (LAST_ID - FIRST_DERIVED_ID + 1)


def users_conf(access: AccessPlan) -> str:
    """The text of users.conf."""
    lines = [
        _HEADER,
        # So that a head sees the end of a directory, whose other files are then missing.
        *((f"# More come from the directory {access.directory.base}.",) if access.directory else ()),
        f"{_WORD} entries {len(access.groups) + len(access.users)}",
        f"{_WORD} removed-jobs {access.removed_jobs}",
        *(f"{_WORD} group {group.name} {group.gid}" for group in access.groups),
        *(" ".join((_WORD, "user", user.name, str(user.uid), *user.groups)) for user in access.users),
    ]
    return "\n".join(lines) + "\n"


def parse_users_conf(text: str) -> AccessPlan:
    """The plan in users.conf, without keys and administrators. Raises ValueError if a part of the text is missing."""
    found: dict[str, list[list[str]]] = {"entries": [], "removed-jobs": [], "group": [], "user": []}
    for kind, *words in (line.split(" ")[1:] for line in text.splitlines() if line.startswith(f"{_WORD} ")):
        found[kind].append(words)
    count = str(len(found["group"]) + len(found["user"]))
    if found["entries"] != [[count]] or not found["removed-jobs"]:
        raise ValueError("users.conf is incomplete")
    return AccessPlan(
        users=tuple(UserPlan(name=name, uid=int(uid), groups=tuple(groups)) for name, uid, *groups in found["user"]),
        groups=tuple(GroupPlan(name=name, gid=int(gid)) for name, gid in found["group"]),
        removed_jobs=RemovedJobs(found["removed-jobs"][0][0]),
    )
