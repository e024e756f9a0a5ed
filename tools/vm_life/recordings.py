"""Outputs of a virtual machine's own commands, as test data: tests/agent/recorded_vm, made anew by each `make vm-life`.

The agent reads these outputs on Debian's systems; its tests parse the files instead of texts that somebody wrote. The
file `versions` says what printed them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from corral.agent.users.logins import FIELDS, PROGRAMS

_WRITERS = " + ".join(f"_EXE={program}" for program in PROGRAMS)
# Shell commands by file name. %s: the name of the node.
NODE: Mapping[str, str] = {
    "routes.json": "ip -json -4 route show default",
    "rules.txt": "ip rule show",
    "lsblk.json": "lsblk --json --paths --output=NAME,TYPE,MOUNTPOINTS /dev/nvme0n1",
    "disks.txt": "ls /dev/disk/by-id",
    "mounts.txt": "cat /proc/mounts",
    "kernel.log": "journalctl --dmesg --boot --output=json --output-fields=MESSAGE,_TRANSPORT --no-pager"
    " --grep='^NVRM: Xid'; true",
    "slurmd-hardware.txt": "slurmd -C",
    "slurmd-unit.txt": "systemctl show --property=Type,Restart,TimeoutStartUSec,Wants,After,MainPID slurmd",
}
HEAD: Mapping[str, str] = {
    "node.txt": "scontrol --oneliner show node %s",
    "nodes.txt": "scontrol --oneliner show nodes",
    "jobs.txt": "squeue --all --noheader --states=RUNNING,SUSPENDED,COMPLETING --Format=JobID:24,BatchFlag:8,State:16",
    "hosts.txt": "getent hosts $(hostname)",
}
# Recorded when people have just used the head, which is lost later, its journal with it.
LOGINS_FILE = "logins.json"
LOGINS = f"journalctl --quiet --output=json --output-fields={FIELDS} {_WRITERS} | tail -n 200"
_PACKAGES = ("systemd", "cloud-init", "slurmd", "slurmctld", "util-linux", "iproute2", "munge", "mariadb-server")


def record_outputs(
    directory: Path, head: Callable[..., str], node: Callable[..., str], name: str, image: str, logins: Path
) -> Sequence[str]:
    """Write the outputs of both machines, and their versions. Returns the names of the files.

    `head`, `node`: run a command as root there and return its output. `name`: the node's. `image`: the name of the
    image's directory, which is derived from its packages. `logins`: the file with the output of LOGINS.
    """
    shutil.rmtree(directory, ignore_errors=True)
    for machine, run, commands in (("node", node, NODE), ("head", head, HEAD)):
        (directory / machine).mkdir(parents=True)
        for file, command in commands.items():
            text = run("sh", "-c", command.replace("%s", name))
            (directory / machine / file).write_text(text, encoding="utf-8")
    shutil.copyfile(logins, directory / "head" / "logins.json")
    (directory / "versions").write_text(_versions(head, image), encoding="utf-8")
    return sorted(str(file.relative_to(directory)) for file in directory.rglob("*") if file.is_file())


def _versions(run: Callable[..., str], image: str) -> str:
    kernel = run("uname", "--kernel-release").strip()
    installed = run("sh", "-c", f"dpkg-query --show {' '.join(_PACKAGES)} 2>/dev/null; true")
    return f"image {image}\nkernel {kernel}\n" + installed.replace("\t", " ")
