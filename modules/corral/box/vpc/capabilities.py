"""Whether this host can run VPCs, with which users, and what is missing if not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

PROGRAMS = ("unshare", "nsenter", "ip", "bridge", "mount", "pivot_root")
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_TIMEOUT_S = 20  # each takes some milliseconds


class Users(StrEnum):
    """The users in machines: several as on EC2 (if run as `root`, or with a range of `subuids`), or a single one."""

    ROOT = "root"
    SUBUIDS = "subuids"
    ONE = "one"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSupport:
    """What the host supports. `users` is None if it cannot run machines; `problem` is the reason."""

    users: Users | None
    problem: str = ""

    @property
    def user_namespace_options(self) -> tuple[str, ...]:
        """The options of `unshare` for the user namespace."""
        match self.users:
            case Users.SUBUIDS:
                return ("--user", "--map-root-user", "--map-auto")
            case Users.ONE:
                return ("--user", "--map-root-user")
        return ()

    @property
    def as_machine_root(self) -> tuple[str, ...]:
        """The prefix of a command that runs as the machines' root, who may delete all their files."""
        return ("unshare", *self.user_namespace_options, "--") if self.user_namespace_options else ()


# Commands to test in the user namespace, and the problem if one fails; each needs those before it.
_CHECKS = (
    (
        ("true",),
        "user namespaces are disabled - on Ubuntu 24.04 run `sysctl kernel.apparmor_restrict_unprivileged_userns=0`,"
        " elsewhere check user.max_user_namespaces and the container's seccomp profile, or run as root",
    ),
    (("--net", "ip", "link", "add", "br9", "type", "bridge"), "the kernel has no network bridges (module `bridge`)"),
    (
        ("--net", "ip", "link", "add", "v8", "type", "veth", "peer", "name", "v9"),
        "the kernel has no virtual network links (module `veth`)",
    ),
    (
        ("--mount", "--pid", "--fork", "--mount-proc", "true"),
        "mounts are disabled or /proc is masked, as in an unprivileged container",
    ),
    (("--time", "--fork", "--boottime", "5", "true"), "the kernel has no time namespaces (CONFIG_TIME_NS, Linux 5.6)"),
)
# With a single user, Slurm's daemons run in a nested user namespace (corral.box.machines.single_uid).
_NESTED = (
    ("unshare", "--user", "--map-user=1000", "--map-group=1000", "true"),
    "user namespaces cannot be nested, and this user has no subordinate ids, which need no nesting - install uidmap,"
    " then as root run `usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER`",
)


# Machines of root's box run in a user namespace of their own (corral.box.vpc.machine_users).
_OF_ROOT = (
    ("--user", "true"),
    "user namespaces are disabled, and machines never run as the host's root - check user.max_user_namespaces and the"
    " container's seccomp profile",
)
_INITIAL_MAP = ["0", "0", "4294967295"]  # of uids, in the initial user namespace


@cache
def probe_host() -> HostSupport:
    """Test what the host supports. Takes a tenth of a second, once, and leaves nothing behind."""
    if sys.platform != "linux":
        return HostSupport(
            users=None, problem=f"machines need Linux, this is {sys.platform} - use WSL or a Linux machine"
        )
    missing = [program for program in PROGRAMS if not shutil.which(program, path=_PATH)]
    if missing:
        return HostSupport(users=None, problem=f"{', '.join(missing)} not found - install util-linux and iproute2")
    support = HostSupport(users=_users())
    for command, problem in checks(support.users, is_initial=is_in_initial_user_namespace()):
        if not _works((*support.user_namespace_options, *command)):
            return HostSupport(users=None, problem=f"machines cannot run here: {problem}")
    return support


def checks(users: Users | None, *, is_initial: bool) -> tuple[tuple[tuple[str, ...], str], ...]:
    """The commands to test and their problems. `is_initial`: this process is in the initial user namespace."""
    if users is Users.ROOT:
        return (*_CHECKS, *((_OF_ROOT,) if is_initial else ()))
    return (*_CHECKS, *((_NESTED,) if users is Users.ONE else ()))


def is_in_initial_user_namespace() -> bool:
    """Whether this process's uids are the host's."""
    return Path("/proc/self/uid_map").read_text(encoding="ascii").split() == _INITIAL_MAP


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
