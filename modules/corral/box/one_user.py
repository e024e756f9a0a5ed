"""What a machine's disk needs where its user namespace has one user id: an ordinary user's box without subordinate ids.

Whoever boots the machine is root there, and every name of its user database means the same user, so that giving a file
to `slurm` or `munge` changes nothing. Slurm's daemons drop their groups where they are root, which such a root may
not: with whatever people run they live one user namespace deeper, where the one user has an ordinary number.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from corral.agent.host_box import AS_USER
from corral.box.vpc.network import Vpc

_NUMBER = "1000"
_ROOT = "0"
_NAME = "root"  # of whoever connects, as on every machine of a box
_DATABASES = ("passwd", "group")
_NUMBERS = {"passwd": (2, 3), "group": (2,)}  # which fields of a line are one
# Which of the one user's names is meant is what comes first: slurmdbd wants its file to be that of `slurm`. Mounts that
# the machine gets later reach also those who are deeper already.
_AS_USER = f"""#!/bin/sh
# as-user NAME COMMAND...: runs it as the machine's one user, who has an ordinary number there, and this name.
mount --make-rshared / && exec unshare --mount --propagation=slave /bin/sh -c '
databases=$(mktemp -d)
for name in {" ".join(_DATABASES)}; do
    {{ grep "^$1:" "/box/as-user/$name"; cat "/box/as-user/$name"; }} >"$databases/$name"
    mount --bind "$databases/$name" "/etc/$name" || exit 1
done
rm -r "$databases" # what is mounted stays
shift
exec unshare --user --map-user={_NUMBER} --map-group={_NUMBER} -- "$@"' as-user "$@"
"""


def settle_one_user(disk: Path) -> None:
    """Makes all users of a furnished disk one, and puts `as-user` where machines look for the box's programs."""
    for place in (deeper := disk / "box/as-user", disk / "box/sbin"):
        place.mkdir(exist_ok=True)
    for name in _DATABASES:
        text = (disk / "etc" / name).read_text(encoding="utf-8")
        (deeper / name).write_text(_renumbered(text, name, _NUMBER), encoding="utf-8")
        (disk / "etc" / name).write_text(_renumbered(text, name, _ROOT), encoding="utf-8")
    program = disk / "box/sbin/as-user"
    program.write_text(_AS_USER, encoding="utf-8")
    program.chmod(0o755)


def as_people(vpc: Vpc, machine: str, command: Sequence[str]) -> Sequence[str]:
    """The command as people run it on this machine. Raises MachineError."""
    has_one_user = vpc.run(machine, ("test", "-e", AS_USER)).returncode == 0
    return (AS_USER, _NAME, *command) if has_one_user else command


def _renumbered(database: str, name: str, number: str) -> str:
    """The users or groups, all with this number; the first, which is root, is who it is called."""
    lines = [line.split(":") for line in database.splitlines()]
    for fields in lines:
        for place in _NUMBERS[name]:
            if place < len(fields):
                fields[place] = number
    return "".join(":".join(fields) + "\n" for fields in lines)
