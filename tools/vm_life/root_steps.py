"""The steps that look for a user's ways to root, on head, login node and node, and that find those that root plants.

The image's user and ada are ordinary users; grace is an administrator. `ways_to_root` is what runs on the machines.
Another step is root of a node, who wants a program to run on the head.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tools.vm_life.cluster import VirtualCluster, expect
from tools.vm_life.planted_ways import PLANTS, Plant, script

from corral.agent.user_rights import ROOT_GROUPS, SUDOERS

_IMAGES_USER, _PERSON, _ADMINISTRATOR = "admin", "ada", "grace"
_NODE = "cpu-1"
_ADMITS_ADMINISTRATORS = ("head", "login-1")
_MACHINES = (*_ADMITS_ADMINISTRATORS, _NODE)
_DIRECTORY = Path("/run/corral-ways")
_PROGRAM = Path(__file__).with_name("ways_to_root.py")
_PYTHON = ("python3", "-I", f"{_DIRECTORY}/{_PROGRAM.name}")
_PATHS = f"umask 22; {shlex.join(_PYTHON)} paths >{_DIRECTORY}/paths"
# Open to everybody in Debian's image, before corral's boot, or by munge, MariaDB and slurmstepd, which look who
# connects.
_KNOWN_SOCKETS = (
    r"/run/(dbus|dhcpcd|ssh-unix-local|systemd|user|uuidd)/.*|/run/(munge/munge\.socket\.2|mysqld/mysqld\.sock)"
    r"|/var/spool/slurmd/[^/]+_\d+\.\w+"
)
_GROUPS = ("--groups", " ".join(sorted(ROOT_GROUPS)))
_WAYS = (*_PYTHON, "files", "commands", "--list", f"{_DIRECTORY}/paths", "--known-sockets", _KNOWN_SOCKETS, *_GROUPS)
_COMMANDS = (*_PYTHON, "commands", *_GROUPS)
# What polkit lets everybody do, as Debian ships it: delay a shutdown, keep one's own processes after a logout.
_OPEN_ACTIONS = re.compile(r"polkit: org\.freedesktop\.login1\.(inhibit-.*|set-self-linger)")
_NO_RULE = f"mv {SUDOERS} /run/rule"
_RULE_AGAIN = f"mv /run/rule {SUDOERS}"
# A program that root of a node leaves where the head finds it, and what it does there. /mnt is mounted for a moment.
_ARCHIVER, _MOUNTED, _RAN = "/home/archiver", "/mnt/archiver", "/tmp/archiver-ran"  # noqa: S108
_LEAVE_ARCHIVER = f"printf '#!/bin/sh\\ntouch {_RAN}\\n' >{_ARCHIVER}; chmod 755 {_ARCHIVER}"
_MOUNT_ANOTHER = f"mount -t tmpfs -o mode=755 tmpfs /mnt; install -m 755 {_ARCHIVER} {_MOUNTED}"
_WITHOUT_LIMITS = "/run/systemd/system/slurmdbd.service.d/zz-free.conf"
_TAKE_LIMITS = (
    f"mkdir -p {_WITHOUT_LIMITS.rpartition('/')[0]}; "
    f"printf '[Service]\\nNoExecPaths=\\nExecPaths=\\nMountFlags=\\n' >{_WITHOUT_LIMITS}"
)
# slurmdbd ends over what a program answers instead of an archive (seen with 22.05), and is started again.
_ANSWERS = "for try in $(seq 150); do sacctmgr -n show cluster && exit; sleep 2; done; exit 1"
_RESTART = f"systemctl daemon-reload; systemctl restart slurmdbd; {_ANSWERS}"
_OPTIONAL = ("crontab", "at", "pkcheck", "mariadb")


def no_user_becomes_root(cluster: VirtualCluster) -> str:
    """Nobody has a way to root, and each way is found where it is planted or where somebody may take it."""
    cluster.booted_login_node()
    missing = {name: _missing(cluster, name) for name in _MACHINES}
    for name in _MACHINES:
        known = partial(_knows, cluster, name, _PERSON)
        cluster.wait_until(known, f"{name} knows {_PERSON}")
        of_person = partial(cluster.root_output, cluster.instance(name), "runuser", "-u", _PERSON, "--")
        _expect_found(cluster, name, _plants(missing[name]), of_person)
        _expect_allowed(cluster, name)
    for name in _MACHINES:
        for user in (_IMAGES_USER, _PERSON):
            _expect_none(cluster, name, _as(cluster, name, user))
    count = sum(len(plant.found) for plant in PLANTS)
    absent = "; ".join(f"{name} has no {', '.join(found)}" for name, found in missing.items() if found)
    return (
        f"{_IMAGES_USER} and {_PERSON} have none on {', '.join(_MACHINES)}; {count} that root plants are found, and "
        f"those of root, of {_ADMINISTRATOR} by sudo, and of {_IMAGES_USER} without corral's rule; {absent}"
    )


def nobody_removed_becomes_root(cluster: VirtualCluster) -> str:
    """What would still run as a person who was removed has no way to root."""
    for name in _MACHINES:
        instance = cluster.instance(name)
        expiry = cluster.root_output(instance, "sh", "-c", f"getent shadow {_PERSON} | cut -d: -f8").strip()
        expect(expiry == "1", f"{_PERSON} is removed on {name}: {expiry!r}")
        user = ("setpriv", f"--reuid={_PERSON}", "--regid=2000", "--init-groups")
        of_person = partial(cluster.root_output, instance, *user)
        plants = _plants(_missing(cluster, name))
        _expect_found(cluster, name, plants, of_person)
        _expect_none(cluster, name, of_person)
    count = sum(len(plant.found) for plant in PLANTS)
    return (
        f"what runs as {_PERSON} after `corral up` has no way to root on {', '.join(_MACHINES)}; {count} that root "
        "plants are found"
    )


def no_program_of_a_node_runs_on_the_head(cluster: VirtualCluster) -> str:
    """Root of a node is root in Slurm, and has slurmdbd run a program there that the node left in a shared home."""
    head = partial(cluster.root_output, cluster.instance("head"))
    cluster.root_output(cluster.instance(_NODE), "sh", "-c", _LEAVE_ARCHIVER)
    head("sh", "-c", _MOUNT_ANOTHER)
    try:
        for program in (_ARCHIVER, _MOUNTED):
            expect(not _runs_by_slurmdbd(cluster, program), f"slurmdbd does not run {program}")
        head("sh", "-c", f"{_TAKE_LIMITS}; {_RESTART}")
        for program in (_ARCHIVER, _MOUNTED):
            expect(_runs_by_slurmdbd(cluster, program), f"slurmdbd without its limits runs {program}")
    finally:
        head("sh", "-c", f"umount /mnt; rm -f {_ARCHIVER} {_WITHOUT_LIMITS}; {_RESTART}")
    return "slurmdbd runs neither a program in /home nor one that was mounted after its start; without its limits, both"


def _runs_by_slurmdbd(cluster: VirtualCluster, program: str) -> bool:
    """Whether an archive script that root of a node names has run on the head."""
    cluster.root_output(cluster.instance("head"), "sh", "-c", _ANSWERS)
    archive = ("sacctmgr", "-i", "archive", "dump", f"script={program}", "purgejobafter=1months")
    cluster.as_root(cluster.instance(_NODE), *archive)  # fails either way: the program gives no answer
    return cluster.as_root(cluster.instance("head"), "sh", "-c", f"sleep 5; rm {_RAN}").returncode == 0


def _plants(missing: Sequence[str]) -> Sequence[Plant]:
    """The ways that can be planted on a machine without these programs."""
    return [plant for plant in PLANTS if plant.needs not in missing]


def _as(cluster: VirtualCluster, name: str, user: str) -> partial[str]:
    """Runs a command as a user on a machine: on a node in a job of theirs."""
    job = ("srun", "-n1", f"-w{name}", "--mem=200M", "--chdir=/") if name == _NODE else ()
    machine = cluster.instance("head" if job else name)
    return partial(cluster.root_output, machine, "runuser", "-u", user, "--", *job)


def _expect_none(cluster: VirtualCluster, name: str, run: partial[str]) -> None:
    """Raise Failed if who runs commands by `run` has a way to root on the machine."""
    cluster.root_output(cluster.instance(name), "sh", "-c", _PATHS)
    ways = [line for line in run(*_WAYS).splitlines() if not _OPEN_ACTIONS.fullmatch(line)]
    expect(not ways, f"no user becomes root on {name}: {ways}")


def _expect_found(cluster: VirtualCluster, name: str, plants: Sequence[Plant], of_person: partial[str]) -> None:
    """Raise Failed unless the program, run as the person, finds what root plants, which is gone afterwards."""
    _install(cluster, name)
    run = partial(cluster.root_output, cluster.instance(name))
    try:
        run("sh", "-c", script(plants, _PERSON))
        run("sh", "-c", _PATHS)
        found = of_person(*_WAYS).splitlines()
    finally:
        run("sh", "-c", script(plants, _PERSON, is_removed=True))
    unseen = [line for plant in plants for line in plant.found if line not in found]
    expect(not unseen, f"what is planted on {name} is found, but not: {unseen}, in {found}")


def _expect_allowed(cluster: VirtualCluster, name: str) -> None:
    """Raise Failed unless the program finds what root and administrators may, and others without corral's rule."""
    run = partial(cluster.root_output, cluster.instance(name))
    of_root = {"sudo", "systemd-run", *(("MariaDB: root",) if name == "head" else ())}
    found = run(*_COMMANDS).splitlines()
    expect(of_root <= set(found), f"root is root on {name}: {found}")
    sudo = {
        user: "sudo" in run("runuser", "-u", user, "--", *_COMMANDS).splitlines() for user in (_PERSON, _ADMINISTRATOR)
    }
    admitted = {_PERSON: False, _ADMINISTRATOR: name in _ADMITS_ADMINISTRATORS}
    expect(sudo == admitted, f"sudo on {name} is for administrators of the head and the login node: {sudo}")
    run("sh", "-c", _NO_RULE)
    try:
        allowed = run("runuser", "-u", _IMAGES_USER, "--", *_COMMANDS).splitlines()
    finally:
        run("sh", "-c", _RULE_AGAIN)
    expect("sudo" in allowed, f"without corral's rule the image's user becomes root on {name}: {allowed}")


def _install(cluster: VirtualCluster, name: str) -> None:
    """Write the program, which every user may read and nobody but root change."""
    instance = cluster.instance(name)
    cluster.root_output(instance, "install", "-d", "-m", "755", str(_DIRECTORY))
    cluster.write(instance, _DIRECTORY / _PROGRAM.name, _PROGRAM.read_text(encoding="utf-8"))
    cluster.root_output(instance, "chmod", "644", str(_DIRECTORY / _PROGRAM.name))


def _missing(cluster: VirtualCluster, name: str) -> Sequence[str]:
    """The programs that a machine does not have, and with them ways to root."""
    look = f"for program in {' '.join(_OPTIONAL)}; do command -v $program >/dev/null || echo $program; done"
    return cluster.root_output(cluster.instance(name), "sh", "-c", look).split()


def _knows(cluster: VirtualCluster, name: str, user: str) -> bool:
    return cluster.as_root(cluster.instance(name), "id", user).returncode == 0
