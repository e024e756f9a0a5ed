"""What users may do on a machine: nobody but root gains root, and nobody logs in to a head with a key of a shared home.

Images give their first user sudo without a password (cloud-init's 90-cloud-init-users) and groups whose members become
root. That user runs jobs, so every job would have the munge key, the machine's role and its neighbours' data. Slurm
gives a job the groups that its user has on the head, so the head takes them away too.
Pure: `host.ec2` reads and acts.
Sources: sudoers(5), "the last match is used"; slurm.conf(5), "disable_send_gids"; base-passwd's users-and-groups of
Debian (adm, disk, shadow, staff, sudo); docs.docker.com, "Docker daemon attack surface"; LXD's documentation, "Access
to the LXD daemon"; sshd_config(5), AuthorizedKeysFile.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from corral.agent.file_install import HEADER, Placement
from corral.model.enums import Role

# Members read the disks, the journal or password hashes, write programs that root runs, or start containers as root.
_ROOT_GROUPS = (
    "adm disk docker incus incus-admin kmem libvirt lxd microk8s podman root shadow staff sudo systemd-journal wheel"
)
ROOT_GROUPS = frozenset(_ROOT_GROUPS.split())
_FIRST_USER, _NOBODY = 1000, 65534  # of people. Source: login.defs of Debian and Red Hat, UID_MIN
SUDOERS = "/etc/sudoers.d/zzzz-corral"
# Session Manager's own user exists for whom IAM lets in, and its agent grants it sudo.
_SUDO = f"{HEADER}# It wins over what is read before: nobody but root and Session Manager's user uses sudo.\n"
_RULE = "ALL, !root, !ssm-user ALL=(ALL:ALL) !ALL\n"
ADMINS = f"{SUDOERS}-admins"  # read after the rule, on the head alone
KEYS = "/etc/ssh/corral_users"  # a file for each person, on the head
_INCLUDE = re.compile(r"[@#]includedir\s+/etc/sudoers\.d/?\s*")
# Root of a node may write homes as any user. sshd uses the first block that matches: that of the declared keys is
# read before this one. Root's keys are on the machine itself.
_NO_KEYS = f"""{HEADER}# Nodes share the homes: this machine accepts only the keys in the environment's file.
Match User *,!root
    AuthorizedKeysFile none
"""


def user_rights(role: Role) -> tuple[Placement, ...]:
    """The files that keep users from root, and where people log in sshd from keys in shared homes."""
    sudo = Placement(path=SUDOERS, content=(_SUDO + _RULE).encode(), mode=0o440)
    keys = Placement(path="/etc/ssh/sshd_config.d/70-corral-homes.conf", content=_NO_KEYS.encode())
    return (sudo,) if role is Role.COMPUTE else (sudo, keys)


def is_person(uid: int) -> bool:
    """Whether this is the id of a person, and not root's or one of the system's own users."""
    return _FIRST_USER <= uid != _NOBODY


def root_memberships(passwd: str, group: str) -> tuple[tuple[str, str], ...]:
    """The memberships of people in groups whose members become root, from /etc/passwd and /etc/group: (user, group)."""
    people = {fields[0] for fields in _people(passwd)}
    return tuple(
        (member, fields[0])
        for fields in entries(group, 4)
        if fields[0] in ROOT_GROUPS
        for member in fields[3].split(",")
        if member in people
    )


def primary_memberships(passwd: str, group: str) -> tuple[tuple[str, str], ...]:
    """The same where it is a person's own group in /etc/passwd, of which nobody can be taken out."""
    named = {fields[2]: fields[0] for fields in entries(group, 4) if fields[0] in ROOT_GROUPS}
    return tuple((fields[0], named[fields[3]]) for fields in _people(passwd) if fields[3] in named)


def overriding_sudoers(sudoers: str, names: Iterable[str]) -> tuple[str, ...]:
    """What sudo reads after corral's rule, which would then not be the last: lines of /etc/sudoers, files of sudoers.d.

    `names`: of the files in /etc/sudoers.d. sudo skips those with a dot, or a tilde at their end.
    """
    lines = [line for line in sudoers.split("\n") if line.strip()]
    include = next((at for at, line in enumerate(lines) if _INCLUDE.fullmatch(line)), None)
    if include is None:
        return (f"/etc/sudoers: no line '@includedir {SUDOERS.rpartition('/')[0]}'",)
    own = SUDOERS.rpartition("/")[2]
    later = sorted(
        name for name in names if own < name != ADMINS.rpartition("/")[2] and "." not in name and not name.endswith("~")
    )
    return (
        *(f"/etc/sudoers: {line}" for line in lines[include + 1 :] if _is_rule(line)),
        *(f"/etc/sudoers.d/{name}" for name in later),
    )


def _is_rule(line: str) -> bool:
    """True unless the line is a comment: `#include` and a user by number, `#1000`, are none."""
    return not line.lstrip().startswith("#") or bool(re.match(r"\s*#(include|\d)", line))


def _people(passwd: str) -> Sequence[list[str]]:
    return [found for found in entries(passwd, 7) if found[2].isdecimal() and is_person(int(found[2]))]


def entries(text: str, fields: int) -> Sequence[list[str]]:
    """The lines of /etc/passwd, /etc/group or /etc/shadow with this number of fields, split at the colons."""
    return [found for line in text.split("\n") if len(found := line.split(":")) == fields]
