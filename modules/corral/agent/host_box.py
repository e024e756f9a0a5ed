"""A machine of the AWS in a box: no systemd, no kernel modules; what EC2 attaches is a directory here."""

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from corral.agent import fence
from corral.agent.homes import make_home
from corral.agent.hosts import BOX, Daemon, HostError, run
from corral.agent.install import Placement, install
from corral.agent.kept import kept, leave_running, listens, processes
from corral.agent.packages import Package
from corral.model.accounting import DATABASE_SOCKET, DATABASE_USER

_ATTACHED_IN_S = 120  # a volume is attached after its machine has started
_STEP_S = 0.1
_ENDS_IN_S = 60  # slurmctld writes its state first
_POWEROFF = BOX / "sbin/poweroff"
_LOGS = Path("/var/log/corral")
_SSHD_PID = Path("/run/sshd.pid")
_PER_BOOT = Path("/var/lib/cloud/scripts/per-boot")  # cloud-init's
# Where a machine has one user alone, this runs a command as that one; else it is missing. The box puts it there.
AS_USER = "/usr/local/sbin/as-user"
# MariaDB knows users by their names, and there the one user has that of root.
_NO_PASSWORD = f"ALTER USER {DATABASE_USER}@localhost IDENTIFIED VIA mysql_native_password USING ''"
_LISTENS_IN_S = 60.0
_AGAIN = b"#!/bin/sh\n# Managed by corral: written by `corral-agent boot`.\nexec /opt/corral/boot.sh\n"


class BoxHost:
    """Daemons stay in the foreground of who starts them again, whom the machine's init adopts; mounts are binds of
    directories that the box has.

    `box`: where the box shows what is attached. `logs`: where daemons write what systemd would keep. `per_boot`:
    the directory of what runs at every boot; without systemd nothing else starts a daemon again. `sshd_pid`: where sshd
    says which process it is.
    """

    def __init__(
        self,
        box: Path = BOX,
        logs: Path = _LOGS,
        attached_in_s: float = _ATTACHED_IN_S,
        per_boot: Path = _PER_BOOT,
        sshd_pid: Path = _SSHD_PID,
        listens_in_s: float = _LISTENS_IN_S,
    ) -> None:
        self._volumes = box / "volumes"
        self._file_systems = box / "file-systems"
        self._logs = logs
        self._has_one_user = Path(AS_USER).exists()
        self._attached_in_s = attached_in_s
        self._sshd_pid = sshd_pid
        self._listens_in_s = listens_in_s
        self._again = Placement(path=str(per_boot / "corral"), content=_AGAIN, mode=0o755)

    def stop_updates(self) -> None:
        """Nothing here upgrades packages."""

    def install(self, packages: Sequence[Package]) -> None:
        """Installs nothing: a machine has the programs of the box's own system."""

    def set_name(self, name: str) -> None:
        """Gives the machine this host name."""
        run(("hostname", name))
        address = run(("hostname", "--all-ip-addresses")).split()[0]
        Path("/etc/hosts").write_text(f"127.0.0.1 localhost\n{address} {name}\n", encoding="utf-8")

    def fence_metadata(self) -> None:
        """Lets nobody but root reach the metadata service, now and after every boot, as booting does it."""
        told = fence.rule(Path("/proc/self/uid_map").read_text(encoding="ascii"))
        if told and not run(("ip", "rule", "list", "priority", str(fence.PRIORITY))).strip():
            run(("ip", "rule", "add", *told))

    def search(self, zone: str) -> None:
        """Lets names without a dot be looked up in this zone first."""
        resolv = Path("/etc/resolv.conf")
        resolv.write_text(searching(resolv.read_text(encoding="utf-8"), zone), encoding="utf-8")

    def mount_volume(self, volume_id: str, place: Path) -> None:
        """Mounts a volume that is attached or will be soon. Raises HostError where it does not come."""
        source, until = self._volumes / volume_id, time.monotonic() + self._attached_in_s
        while not source.is_dir():
            if time.monotonic() > until:
                raise HostError(f"volume {volume_id} was not attached within {self._attached_in_s} s")
            time.sleep(_STEP_S)
        _bind(source, place)

    def mount_home(self, file_system: str, place: Path) -> None:
        """Mounts an EFS file system by its id."""
        _bind(self._file_systems / file_system, place)

    def make_home(self, user: str) -> None:
        """Makes the user's home of the system's skeleton, where it is not there. Raises HostError."""
        make_home(user, run)

    def mount_lustre(self, dns_name: str, mount_name: str, place: Path) -> None:
        """Mounts a Lustre file system as its clients do."""
        _bind(self._file_systems / dns_name.split(".")[0], place)

    def mount_nvme(self, place: Path) -> None:
        """Makes a directory for everybody: the machine has one disk, which lasts as long as it does."""
        place.mkdir(parents=True, exist_ok=True)
        place.chmod(0o1777)

    def wake_gpus(self) -> None:
        """Does nothing: a GPU of the box is a name."""

    def start(self, daemon: Daemon, options: Sequence[str] = ()) -> None:
        """Starts the daemon with these options; one that runs already is left alone. Raises HostError.

        One that is in the pause before its next start runs.
        """
        install((self._again,))
        if processes(daemon):
            return
        if not Path(daemon.command[0]).exists():
            raise HostError(f"{daemon.command[0]} is not there - it would be {daemon.unit}")
        for directory in daemon.owned:
            Path(directory).mkdir(parents=True, exist_ok=True)
            shutil.chown(directory, daemon.user)
        if self._has_one_user and daemon.unit == "slurmdbd":
            run(("mariadb", "--no-defaults", "--user=root", f"--socket={DATABASE_SOCKET}", "-e", _NO_PASSWORD))
        variables = ("env", *daemon.environment) if daemon.environment else ()
        command = (*self._as_its_user(daemon), *variables, *daemon.command, *daemon.stays, *options)
        log = self._logs / f"{daemon.unit}.log"
        leave_running(kept(command, on_failure=daemon.packaged), log)
        if daemon.socket and not listens(daemon.socket, self._listens_in_s):
            raise HostError(f"{daemon.unit} takes no connection after {self._listens_in_s:g} s - see {log}")

    def _as_its_user(self, daemon: Daemon) -> Sequence[str]:
        """What precedes a daemon's command so that it runs as its user."""
        if self._has_one_user:  # MariaDB lets the agent in who asks for root: by his name, which it looks up
            name = "root" if daemon.user == "mysql" else daemon.user
            return (AS_USER, name) if daemon.packaged else ()
        if daemon.user == "root":
            return ()
        return ("setpriv", f"--reuid={daemon.user}", "--init-groups", "--regid", daemon.user, "--")

    def restart(self, daemon: Daemon, mark: Path | None = None) -> None:
        """Ends the daemon, and who would start it again, and starts it anew. Raises HostError where it does not end."""
        until = time.monotonic() + _ENDS_IN_S
        while running := processes(daemon):
            for process in running:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGTERM)
            if time.monotonic() > until:
                raise HostError(f"{daemon.unit} did not end within {_ENDS_IN_S} s")
            time.sleep(_STEP_S)
        self.start(daemon)
        if mark:
            mark.unlink(missing_ok=True)

    def reload_sshd(self) -> None:
        """Lets sshd read its settings anew, where it runs."""
        with contextlib.suppress(OSError, ValueError):  # no file, or no process any more
            os.kill(int(self._sshd_pid.read_text(encoding="ascii")), signal.SIGHUP)

    def power_off(self) -> None:
        """Ends this machine."""
        run((str(_POWEROFF),))


def searching(resolv_conf: str, zone: str) -> str:
    """resolv.conf when it names this zone before those that it names already."""
    lines = resolv_conf.splitlines()
    zones = [name for line in lines if line.startswith("search ") for name in line.split()[1:]]
    others = [line for line in lines if not line.startswith("search ")]
    return "\n".join((*others, " ".join(("search", *dict.fromkeys((zone, *zones)))))) + "\n"


def _is_mounted(place: Path) -> bool:
    """True if anything is mounted there; os.path.ismount does not see a bind within one file system."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return str(place) in {line.split()[4] for line in lines}


def _bind(source: Path, place: Path) -> None:
    if _is_mounted(place):
        return
    source.mkdir(parents=True, exist_ok=True)
    place.mkdir(parents=True, exist_ok=True)
    run(("mount", "--bind", str(source), str(place)))
