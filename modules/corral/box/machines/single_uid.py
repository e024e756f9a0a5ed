"""Disks of machines with a single uid, for the box of an ordinary user without subordinate ids.

The user who boots the machine is root in it, and all names in its user database have the same uid, so that chown to
`slurm` or `munge` changes nothing. Slurm's daemons drop their groups if they run as root, which this root may not do.
They run in a nested user namespace with an ordinary uid, as users' commands do.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from corral.agent.host.box import AS_USER
from corral.box.vpc.virtual_network import Vpc

_ORDINARY_UID = "1000"
_ROOT_UID = "0"
_ROOT = "root"
_DATABASES = ("passwd", "group")
_ID_FIELDS = {"passwd": (2, 3), "group": (2,)}  # indexes of uids and gids
# The first name of the uid counts: slurmdbd checks that its file belongs to `slurm`. Later mounts of the machine
# propagate into the nested namespaces.
_AS_USER = f"""#!/bin/sh
# as-user NAME COMMAND...: run a command as the machine's one user, with an ordinary uid and this name.
mount --make-rshared / && exec unshare --mount --propagation=slave /bin/sh -c '
databases=$(mktemp -d)
for name in {" ".join(_DATABASES)}; do
    {{ grep "^$1:" "/box/as-user/$name"; cat "/box/as-user/$name"; }} >"$databases/$name"
    mount --bind "$databases/$name" "/etc/$name" || exit 1
done
rm -r "$databases" # the mounts remain
shift
exec unshare --user --map-user={_ORDINARY_UID} --map-group={_ORDINARY_UID} -- "$@"' as-user "$@"
"""


def map_users_to_one(disk: Path) -> None:
    """Give all users of a disk the same uid, and install the program `as-user`."""
    for directory in (deeper := disk / "box/as-user", disk / "box/sbin"):
        directory.mkdir(exist_ok=True)
    for name in _DATABASES:
        text = (disk / "etc" / name).read_text(encoding="utf-8")
        (deeper / name).write_text(_with_id(text, name, _ORDINARY_UID), encoding="utf-8")
        (disk / "etc" / name).write_text(_with_id(text, name, _ROOT_UID), encoding="utf-8")
    program = disk / "box/sbin/as-user"
    program.write_text(_AS_USER, encoding="utf-8")
    program.chmod(0o755)


def as_user_command(vpc: Vpc, machine: str, command: Sequence[str], user: str = _ROOT) -> Sequence[str]:
    """The command, wrapped to run as this user of the machine; if it has a single uid, always as an ordinary user.

    Raises MachineError.
    """
    if vpc.run(machine, ("test", "-e", AS_USER)).returncode == 0:
        return (AS_USER, user, *command)
    return command if user == _ROOT else ("runuser", "-u", user, "--", *command)


def _with_id(database: str, name: str, identity: str) -> str:
    """The users or groups with this uid or gid in every line; the first line is root's."""
    lines = [line.split(":") for line in database.splitlines()]
    for fields in lines:
        for index in _ID_FIELDS[name]:
            if index < len(fields):
                fields[index] = identity
    return "".join(":".join(fields) + "\n" for fields in lines)
