"""Whether this machine can hold a VPC, and as whom; where it cannot, one sentence that says what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

PROGRAMS = ("unshare", "nsenter", "ip", "mount", "pivot_root")
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_TIMEOUT_S = 20  # each takes some milliseconds


class Users(StrEnum):
    """Who is who inside: as on EC2 (`root`, or an ordinary user's range of `subuids`), or one user who is everybody."""

    ROOT = "root"
    SUBUIDS = "subuids"
    ONE = "one"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a VPC can stand on here. `users` is None where it cannot, and `problem` then says why."""

    users: Users | None
    problem: str = ""

    @property
    def own_user(self) -> tuple[str, ...]:
        """The options of `unshare` that make the user namespace."""
        match self.users:
            case Users.SUBUIDS:
                return ("--user", "--map-root-user", "--map-auto")
            case Users.ONE:
                return ("--user", "--map-root-user")
        return ()

    @property
    def as_root(self) -> tuple[str, ...]:
        """What precedes a command that is to be root as machines have it: all their files are root's to delete."""
        return ("unshare", *self.own_user, "--") if self.own_user else ()


# What is tried, within the user namespace, and what to do where it fails. The order goes from the outside inwards.
_TRIALS = (
    (
        ("true",),
        "user namespaces are closed: on Ubuntu 24.04 `sysctl kernel.apparmor_restrict_unprivileged_userns=0`,"
        " elsewhere user.max_user_namespaces, or the seccomp profile of the container - or be root",
    ),
    (("--net", "ip", "link", "add", "br9", "type", "bridge"), "the kernel makes no network bridges (module `bridge`)"),
    (
        ("--net", "ip", "link", "add", "v8", "type", "veth", "peer", "name", "v9"),
        "the kernel makes no virtual network links (module `veth`)",
    ),
    (
        ("--mount", "--pid", "--fork", "--mount-proc", "true"),
        "mounts are closed, or /proc is masked, as in a container that is not privileged",
    ),
    (("--time", "--fork", "--boottime", "5", "true"), "the kernel has no time namespaces (CONFIG_TIME_NS, Linux 5.6)"),
)
# Where one user is everybody, Slurm's daemons are one user namespace deeper (corral.box.one_user).
_DEEPER = (
    ("unshare", "--user", "--map-user=1000", "--map-group=1000", "true"),
    "user namespaces cannot be nested, and this user has no subordinate ids, which do without: install uidmap, then as"
    " root `usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER`",
)


@cache
def probe() -> Ground:
    """What a VPC can stand on. Nothing is left behind; it takes a tenth of a second, once."""
    if sys.platform != "linux":
        return Ground(users=None, problem=f"machines need Linux, this is {sys.platform} - use WSL or a Linux machine")
    missing = [program for program in PROGRAMS if not shutil.which(program, path=_PATH)]
    if missing:
        return Ground(users=None, problem=f"{', '.join(missing)} not found - install util-linux and iproute2")
    ground = Ground(users=_users())
    for command, problem in (*_TRIALS, *((_DEEPER,) if ground.users is Users.ONE else ())):
        if not _works((*ground.own_user, *command)):
            return Ground(users=None, problem=f"machines cannot run here: {problem}")
    return ground


def _users() -> Users:
    if os.geteuid() == 0:
        return Users.ROOT
    return Users.SUBUIDS if _works(("--user", "--map-root-user", "--map-auto", "true")) else Users.ONE


def _works(arguments: tuple[str, ...]) -> bool:
    try:
        done = subprocess.run(
            ["unshare", *arguments], capture_output=True, check=False, timeout=_TIMEOUT_S, env={"PATH": _PATH}
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
