"""The users of machines whose VPC is started by root: a user namespace, in which root is an ordinary uid of the host.

Machines run what people submit to a cluster, as root and as others. In the initial user namespace their root would be
the host's: it could write /proc/sys, create device files and load modules.
Source: user_namespaces(7), "Interaction of user namespaces and other types of namespaces".
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from corral.box.vpc.capabilities import is_in_initial_user_namespace

# uids that no user, no container manager and no service has. Source: systemd's UIDS-GIDS, "Summary".
FIRST_UID = 0x70000000
COUNT = 65536


@dataclass(frozen=True, slots=True)
class MachineUsers:
    """A user namespace, held by a descriptor. The machines' uid N is FIRST_UID + N on the host."""

    descriptor: int

    @property
    def enter(self) -> tuple[str, ...]:
        """The prefix of a command that runs as root in the namespace; pass the descriptor to it."""
        return ("nsenter", f"--user=/proc/self/fd/{self.descriptor}", "--")


def create_machine_users() -> MachineUsers | None:
    """A user namespace for machines; None if this process is in one already, or not root."""
    if os.geteuid() != 0 or not is_in_initial_user_namespace():
        return None
    command = ["unshare", "--user", "/bin/sh", "-c", "echo here; read -r _"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdout.readline()
        for kind in ("uid_map", "gid_map"):
            Path(f"/proc/{process.pid}/{kind}").write_text(f"0 {FIRST_UID} {COUNT}\n", encoding="ascii")
        descriptor = os.open(f"/proc/{process.pid}/ns/user", os.O_RDONLY)
        process.stdin.close()
    return MachineUsers(descriptor)


def give_to_machines(path: Path) -> None:
    """Make the machines' root the owner of a new directory and what it holds; what they created keeps its owner."""
    if path.stat().st_uid >= FIRST_UID:
        return
    with contextlib.suppress(FileNotFoundError):
        os.chown(path / "console", FIRST_UID, FIRST_UID)  # a link out of the disk
    owner = f"{FIRST_UID}:{FIRST_UID}"
    subprocess.run(["chown", "--recursive", "--no-dereference", owner, str(path)], check=True, capture_output=True)
