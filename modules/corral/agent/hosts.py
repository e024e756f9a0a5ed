"""What a machine is to the agent, as far as kinds of machine differ: `host_ec2` and `host_box` implement it."""

import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from corral.agent.errors import AgentError
from corral.agent.packages import Package
from corral.model.accounting import DATABASE_DIR, DATABASE_SOCKET

BOX = Path("/box")  # only a machine of the AWS in a box has it
_STAYS = ("-D",)  # Slurm's daemons, as Debian's units start them


class HostError(AgentError):
    """A machine that does not do what the agent needs of it. `code`: of the command that failed, None for all else."""

    def __init__(self, text: str, code: int | None = None) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """A daemon: its systemd unit, and the command that starts it. `owned`: directories of its user.

    `packaged`: it comes with a unit, and runs once only; of the agent's own a second one sees for itself that it is not
    needed. `stays`: options with which it does not go into the background. `socket`: where it takes connections, if who
    starts it waits for that. `after`: units that it waits for at a boot. `environment`: variables of its own,
    `NAME=value`.
    """

    unit: str
    command: tuple[str, ...]
    user: str = "root"
    owned: tuple[str, ...] = ()
    packaged: bool = True
    stays: tuple[str, ...] = ()
    socket: str = ""
    after: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()


class Host(Protocol):
    """The machine that the agent runs on."""

    def stop_updates(self) -> None:
        """From now on no package of this machine is upgraded by itself."""
        ...

    def install(self, packages: Sequence[Package]) -> None:
        """Installs what the machine's image lacks of these, and holds it. Raises HostError."""
        ...

    def set_name(self, name: str) -> None:
        """Gives the machine this host name."""
        ...

    def fence_metadata(self) -> None:
        """Lets nobody but root reach the metadata service, now and after every boot."""
        ...

    def search(self, zone: str) -> None:
        """Lets names without a dot be looked up in this zone first."""
        ...

    def mount_volume(self, volume_id: str, place: Path) -> None:
        """Mounts a volume that is attached or will be soon. Raises HostError where it does not come."""
        ...

    def mount_home(self, file_system: str, place: Path) -> None:
        """Mounts an EFS file system by its id."""
        ...

    def make_home(self, user: str) -> None:
        """Makes this user's home, as when a user is made, where the file system of homes lacks it. Raises HostError."""
        ...

    def mount_lustre(self, dns_name: str, mount_name: str, place: Path) -> None:
        """Mounts a Lustre file system as its clients do."""
        ...

    def mount_nvme(self, place: Path) -> None:
        """Mounts the machine's own disks as one, for everybody, now and after every boot. Raises HostError."""
        ...

    def wake_gpus(self) -> None:
        """Keeps the NVIDIA driver's state, now and after every boot: else each question to it begins anew, for long."""
        ...

    def start(self, daemon: Daemon, options: Sequence[str] = ()) -> None:
        """Starts the daemon with these options; one that runs already may be restarted. Raises HostError."""
        ...

    def restart(self, daemon: Daemon, mark: Path | None = None) -> None:
        """Ends the daemon, which was started before, and starts it anew. Raises HostError.

        `mark`: a file that goes once it is done, even where this process ends with the daemon.
        """
        ...

    def reload_sshd(self) -> None:
        """Lets sshd read its settings anew, where it runs; sessions stay. One that starts later reads them itself."""
        ...

    def power_off(self) -> None:
        """Ends this machine. EC2 terminates it, or stops it where it was launched so."""
        ...


def munge() -> Daemon:
    """The daemon that proves who sends a message of Slurm's."""
    owned = ("/etc/munge", "/var/lib/munge", "/var/log/munge", "/run/munge")
    stays, socket = ("--foreground",), "/run/munge/munge.socket.2"
    return Daemon(unit="munge", command=("/usr/sbin/munged",), user="munge", owned=owned, stays=stays, socket=socket)


def slurmctld(sbin: str, state_dir: str) -> Daemon:
    """Slurm's controller; `state_dir` is its StateSaveLocation."""
    owned = (state_dir, "/var/log/slurm")
    command, after = (f"{sbin}/slurmctld",), ("slurmdbd",)
    return Daemon(unit="slurmctld", command=command, user="slurm", owned=owned, stays=_STAYS, after=after)


def mariadb() -> Daemon:
    """The database of slurmdbd; its settings are in a file of their own."""
    owned = (DATABASE_DIR, "/run/mysqld")
    return Daemon(unit="mariadb", command=("/usr/sbin/mariadbd",), user="mysql", owned=owned)


def slurmdbd(sbin: str) -> Daemon:
    """The daemon that keeps the records of jobs.

    Its library has the path of the database's socket built in, which is not the same in all systems.
    """
    owned, after = ("/var/log/slurm", "/run/slurmdbd"), ("munge", "mariadb")
    command, socket = (f"{sbin}/slurmdbd",), (f"MYSQL_UNIX_PORT={DATABASE_SOCKET}",)
    return Daemon(
        unit="slurmdbd", command=command, user="slurm", owned=owned, stays=_STAYS, after=after, environment=socket
    )


def slurmd(sbin: str) -> Daemon:
    """Slurm's daemon of a node."""
    owned = ("/var/spool/slurmd", "/var/log/slurm")
    return Daemon(unit="slurmd", command=(f"{sbin}/slurmd",), owned=owned, stays=_STAYS)


def watcher() -> Daemon:
    """The agent's own, on a node."""
    return Daemon(unit="corral-watch", command=("/opt/corral/bin/corral-agent", "watch"), packaged=False)


def credentials() -> Daemon:
    """The agent's own, which hands out the job role."""
    return Daemon(unit="corral-credentials", command=("/opt/corral/bin/corral-agent", "credentials"), packaged=False)


def keeper() -> Daemon:
    """The agent's own, on the head."""
    return Daemon(unit="corral-agent", command=("/opt/corral/bin/corral-agent", "keep"), packaged=False)


def run(command: Sequence[str]) -> str:
    """What the command printed. Raises HostError where it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise HostError(f"{shlex.join(command)}: {error}") from error
    if done.returncode:
        raise HostError(f"{shlex.join(command)} failed with {done.returncode}: {done.stderr.strip()}", done.returncode)
    return done.stdout
