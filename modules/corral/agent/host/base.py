"""The interface to the machine, where EC2 and the box differ: `host.ec2` and `host.box` implement it."""

import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Protocol

from corral.agent.errors import AgentError
from corral.agent.host.packages import Package
from corral.agent.users.accounts import AccountChange
from corral.model.accounting_paths import DATABASE_DIR, DATABASE_SOCKET
from corral.model.users import HOMES, AccessPlan

BOX = Path("/box")  # exists only on machines of the box, the local AWS emulator
_FOREGROUND = ("-D",)  # Slurm's daemons, as Debian's units start them


class HostError(AgentError):
    """An operation on the machine failed. `code`: the exit code of a failed command, else None."""

    def __init__(self, text: str, code: int | None = None) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """A daemon: its systemd unit and the command that starts it.

    `owned_dirs`: directories that belong to its user; `private_dirs`: those that nobody else may enter. `packaged`: its
    package ships the unit, and only one instance may run; a second instance of the agent's own daemons exits by itself.
    `foreground`: options that keep it in the foreground. `socket`: where it accepts connections, if the starter waits
    for that. `after`: units that start before it at boot. `environment`: its variables, `NAME=value`.
    `waits_for_head`: it is ready only once the head has answered, so a boot does not wait for it. `mounts`: file
    systems without which it does not start: systemd mounts them, and starts it again until they are there. `limits`:
    what systemd takes from it. `prepared_by`: a program that its user runs before each start.
    """

    unit: str
    command: tuple[str, ...]
    user: str = "root"
    owned_dirs: tuple[str, ...] = ()
    private_dirs: tuple[str, ...] = ()
    packaged: bool = True
    foreground: tuple[str, ...] = ()
    socket: str = ""
    after: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    waits_for_head: bool = False
    mounts: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    prepared_by: str = ""

    @property
    def modes(self) -> Mapping[str, int]:
        """The modes of its directories, by path."""
        return dict.fromkeys(self.private_dirs, 0o700) | dict.fromkeys(self.owned_dirs, 0o755)


# What none of the agent's own daemons needs, nor a tool that they run, such as nvidia-smi, dcgmi, scontrol and ip
# (systemd.exec(5)). ProtectClock= and PrivateDevices= would hide the GPUs' device files.
_LIMITS = (
    "NoNewPrivileges=yes",
    "LockPersonality=yes",
    "RestrictRealtime=yes",
    "RestrictSUIDSGID=yes",
    "ProtectControlGroups=yes",
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
    "SystemCallArchitectures=native",
)
_NODE_LIMITS = (*_LIMITS, "RestrictNamespaces=yes", "ProtectHostname=yes")
# The autoscaler runs `apply`, which starts a second slurmctld in namespaces of its own (`slurm_validation`).
_HEAD_LIMITS = (*_LIMITS, "RestrictNamespaces=mnt net pid uts")
# Every user of a node talks to this one, and it runs no program: root's number for the metadata service, and a port
# below 1024, are all that it has of root.
_CREDENTIALS_LIMITS = (
    *_NODE_LIMITS,
    "CapabilityBoundingSet=CAP_NET_BIND_SERVICE",
    "PrivateDevices=yes",
    "PrivateTmp=yes",
    "ProtectClock=yes",
    "ProtectHome=read-only",  # an AWS configuration of root's holds
    "ProtectKernelLogs=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelTunables=yes",
    "ProtectSystem=full",
    "SystemCallFilter=@system-service",
    "UMask=0077",
)


class Host(Protocol):
    """The machine that the agent runs on."""

    def stop_updates(self) -> None:
        """Disable automatic package upgrades."""
        ...

    def install(self, packages: Sequence[Package]) -> None:
        """Install and hold the packages that the image lacks. Raises HostError."""
        ...

    def build(self, script: Path, *arguments: str) -> None:
        """Run a script of the cluster that compiles programs for this machine. Raises HostError."""
        ...

    def set_name(self, name: str, address: IPv4Address) -> None:
        """Set the host name, which resolves to this address on the machine itself."""
        ...

    def restrict_metadata(self) -> None:
        """Restrict the metadata service to root, now and after every boot."""
        ...

    def restrict_users(self) -> None:
        """Take people out of the groups whose members become root. Raises HostError if sudo lets users become root."""
        ...

    def limit_people(self) -> None:
        """Limit what the processes of each person use together, now and after every boot; root's are not limited."""
        ...

    def set_search_domain(self, zone: str) -> None:
        """Look up names without a dot in this zone first."""
        ...

    def mount_volume(self, volume_id: str, path: Path) -> None:
        """Mount a volume; wait for its attachment. Raises HostError on timeout."""
        ...

    def mount_home(self, file_system: str, path: Path) -> None:
        """Mount an EFS file system by its id."""
        ...

    def make_home(self, user: str) -> None:
        """Create this user's home from /etc/skel if it is missing. Raises AgentError."""
        ...

    def sync_users(self, access: AccessPlan, admin_homes: str = HOMES) -> tuple[AccountChange, ...]:
        """Give this machine the accounts of the cluster's people; lock those of removed ones. Returns the changes.

        `admin_homes`: the directory with the homes of administrators.
        """
        ...

    def as_user(self, user: str) -> Sequence[str]:
        """The words before a command that run it as this user of the system; empty if this machine has a single one."""
        ...

    def journal(self, programs: Sequence[str], fields: str) -> str:
        """The lines that these programs wrote into the system's journal since the last call, as JSON. Raises HostError.

        The first call of a machine returns all of them.
        """
        ...

    def set_up_lustre_efa(self, interfaces: int, mounts: Sequence[Path]) -> None:
        """Let Lustre use this many EFA interfaces, now and after every boot before these mounts. Without them: TCP."""
        ...

    def mount_lustre(self, dns_name: str, mount_name: str, path: Path) -> None:
        """Mount a Lustre file system."""
        ...

    def mount_nvme(self, path: Path) -> None:
        """Mount the instance store as one world-writable file system, now and after every boot. Raises HostError."""
        ...

    def requeue_at_shutdown(self, node: str) -> None:
        """Requeue the jobs of this node when the machine shuts down, before their processes end."""
        ...

    def enable_gpu_persistence(self) -> None:
        """Enable GPU persistence mode, now and after every boot. Without it each nvidia-smi call reloads the state."""
        ...

    def write_units(self, daemons: Sequence[Daemon]) -> None:
        """Write the units of daemons that are started later at once: each reading of systemd's units takes time."""
        ...

    def start(self, daemon: Daemon, options: Sequence[str] = ()) -> None:
        """Start the daemon with these options; a running one may be restarted. Raises HostError."""
        ...

    def restart(self, daemon: Daemon, mark: Path | None = None) -> None:
        """Restart a daemon that was started before. Raises HostError.

        `mark`: a file that is deleted afterwards, even if this process ends with the daemon.
        """
        ...

    def stop(self, daemon: Daemon) -> None:
        """Stop a daemon that was started before, now and at every boot. Raises HostError."""
        ...

    def reload_sshd(self) -> None:
        """Reload the settings of a running sshd; sessions stay."""
        ...

    def power_off(self) -> None:
        """Power off. EC2 then terminates or stops the instance, as its launch template says."""
        ...


def munge() -> Daemon:
    """munged, which authenticates Slurm's messages."""
    foreground, socket = ("--foreground",), "/run/munge/munge.socket.2"
    return Daemon(
        unit="munge",
        command=("/usr/sbin/munged",),
        user="munge",
        owned_dirs=("/run/munge",),
        private_dirs=("/etc/munge", "/var/lib/munge", "/var/log/munge"),
        foreground=foreground,
        socket=socket,
    )


def slurmctld(sbin: str, state_dir: str) -> Daemon:
    """Slurm's controller; `state_dir` is its StateSaveLocation."""
    return Daemon(
        unit="slurmctld",
        command=(f"{sbin}/slurmctld",),
        user="slurm",
        owned_dirs=("/var/log/slurm",),
        private_dirs=(state_dir,),
        foreground=_FOREGROUND,
        after=("slurmdbd",),
        prepared_by="/opt/corral/bin/restore-scripts",
    )


def mariadb() -> Daemon:
    """slurmdbd's database server."""
    return Daemon(
        unit="mariadb",
        command=("/usr/sbin/mariadbd",),
        user="mysql",
        owned_dirs=("/run/mysqld",),
        private_dirs=(DATABASE_DIR,),
    )


def slurmdbd(sbin: str) -> Daemon:
    """Slurm's accounting daemon.

    The socket path is set because the default in its client library differs between systems.
    """
    owned, after = ("/var/log/slurm", "/run/slurmdbd"), ("munge", "mariadb")
    command, socket = (f"{sbin}/slurmdbd",), (f"MYSQL_UNIX_PORT={DATABASE_SOCKET}",)
    # Before 25.11 root of any node can have it run an archive script. It runs no program of its own, so none outside of
    # the system's counts as one; private, so that this also holds for what is mounted later (systemd.exec(5)).
    programs = " ".join(dict.fromkeys(("/usr", "-/opt", str(Path(sbin).parent))))
    return Daemon(
        unit="slurmdbd",
        command=command,
        user="slurm",
        owned_dirs=owned,
        foreground=_FOREGROUND,
        after=after,
        environment=socket,
        limits=("NoNewPrivileges=yes", "MountFlags=private", "NoExecPaths=/", f"ExecPaths={programs}"),
    )


def slurmd(sbin: str, mounts: tuple[str, ...] = ()) -> Daemon:
    """Slurm's node daemon. `mounts`: the file systems that jobs expect."""
    owned = ("/var/spool/slurmd", "/var/log/slurm")
    return Daemon(
        unit="slurmd",
        command=(f"{sbin}/slurmd",),
        owned_dirs=owned,
        foreground=_FOREGROUND,
        waits_for_head=True,
        mounts=mounts,
    )


def watcher() -> Daemon:
    """The agent's node watcher."""
    return Daemon(
        unit="corral-watch", command=("/opt/corral/bin/corral-agent", "node-watch"), packaged=False, limits=_NODE_LIMITS
    )


def credentials() -> Daemon:
    """The agent's endpoint for the job role's credentials."""
    return Daemon(
        unit="corral-credentials",
        command=("/opt/corral/bin/corral-agent", "credentials"),
        packaged=False,
        limits=_CREDENTIALS_LIMITS,
    )


def autoscaler() -> Daemon:
    """The agent's autoscaler, on the head."""
    return Daemon(
        unit="corral-agent", command=("/opt/corral/bin/corral-agent", "autoscaler"), packaged=False, limits=_HEAD_LIMITS
    )


def login_watcher() -> Daemon:
    """The agent's daemon of a login node, which changes accounts and compiles containers as the head's does."""
    command = ("/opt/corral/bin/corral-agent", "login-watch")
    return Daemon(unit="corral-login", command=command, packaged=False, limits=_HEAD_LIMITS)


def as_system_user(user: str) -> Sequence[str]:
    """The words before a command that run it as this user, with the group of that name."""
    return ("setpriv", f"--reuid={user}", "--init-groups", f"--regid={user}", "--")


def run(command: Sequence[str]) -> str:
    """Run the command and return its output. Raises HostError if it fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", check=False, stdin=subprocess.DEVNULL
        )
    except OSError as error:
        raise HostError(f"{shlex.join(command)}: {error}") from error
    if done.returncode:
        raise HostError(f"{shlex.join(command)} failed with {done.returncode}: {done.stderr.strip()}", done.returncode)
    return done.stdout
