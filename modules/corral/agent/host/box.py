"""A machine of the box, the local AWS emulator: no systemd, no kernel modules, and directories as volumes."""

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Sequence
from ipaddress import IPv4Address
from pathlib import Path

from corral.agent import imds_firewall
from corral.agent.file_install import Placement, install
from corral.agent.host.base import BOX, Daemon, HostError, as_system_user, run
from corral.agent.host.daemon_supervisor import listens, processes, start_detached, supervise
from corral.agent.host.packages import Package
from corral.agent.users.accounts import AccountChange
from corral.agent.users.homes import make_home
from corral.agent.users.sync import sync_accounts
from corral.model.accounting_paths import DATABASE_SOCKET, DATABASE_USER
from corral.model.users import HOMES, AccessPlan

_ATTACHED_IN_S = 120  # a volume is attached after its machine has started
_STEP_S = 0.1
_ENDS_IN_S = 60  # slurmctld first writes its state
_POWEROFF = BOX / "sbin/poweroff"
_LOGS = Path("/var/log/corral")
_SSHD_PID = Path("/run/sshd.pid")
_PER_BOOT = Path("/var/lib/cloud/scripts/per-boot")  # cloud-init's
# On machines with a single user, the box installs this to run a command as that user; elsewhere it is missing.
AS_USER = "/usr/local/sbin/as-user"
# MariaDB identifies users by name, and there the single user is root.
_NO_PASSWORD = f"ALTER USER {DATABASE_USER}@localhost IDENTIFIED VIA mysql_native_password USING ''"
_LISTENS_IN_S = 60.0
_BOOT_AGAIN = b"""#!/bin/sh
# Managed by corral: written by `corral-agent boot`. Until a boot has succeeded, the user data repeat it.
[ -e /var/lib/cloud/instance/corral-booted ] && exec /opt/corral/boot.sh
"""


class BoxHost:
    """Daemons run in the foreground of a supervising shell, which init adopts. Mounts are bind mounts of directories.

    `box`: the directory of attached volumes. `logs`: the directory of the daemons' output. `per_boot`: the directory of
    scripts that run at every boot, which start the daemons again. `sshd_pid`: sshd's pid file.
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
        self._boot_script = Placement(path=str(per_boot / "corral"), content=_BOOT_AGAIN, mode=0o755)

    def stop_updates(self) -> None:
        """Do nothing: nothing upgrades packages here."""

    def install(self, packages: Sequence[Package]) -> None:
        """Do nothing: a machine has the programs of the box's own system."""

    def build(self, script: Path, *arguments: str) -> None:
        """Run a script of the cluster that compiles programs for this machine. Raises HostError."""
        run((str(script), *arguments))

    def set_name(self, name: str, address: IPv4Address) -> None:
        """Set the host name, which resolves to this address on the machine itself."""
        run(("hostname", name))
        Path("/etc/hosts").write_text(f"127.0.0.1 localhost\n{address} {name}\n", encoding="utf-8")

    def restrict_metadata(self) -> None:
        """Restrict the metadata service to root; the boot program calls this again at every boot."""
        uid_map = Path("/proc/self/uid_map").read_text(encoding="ascii")
        for service in imds_firewall.reachable_addresses():
            rule = imds_firewall.rule(service, uid_map)
            if rule and not run(service.list_command).strip():
                run(("ip", service.family, "rule", "add", *rule))

    def restrict_users(self) -> None:
        """Do nothing: a machine of the box has no sudo, and its users are the host's."""

    def limit_people(self) -> None:
        """Do nothing: there are no cgroups of people here."""

    def set_search_domain(self, zone: str) -> None:
        """Look up names without a dot in this zone first."""
        resolv = Path("/etc/resolv.conf")
        resolv.write_text(with_search_domain(resolv.read_text(encoding="utf-8"), zone), encoding="utf-8")

    def mount_volume(self, volume_id: str, path: Path) -> None:
        """Mount a volume; wait for its attachment. Raises HostError on timeout."""
        source, until = self._volumes / volume_id, time.monotonic() + self._attached_in_s
        while not source.is_dir():
            if time.monotonic() > until:
                raise HostError(f"volume {volume_id} was not attached within {self._attached_in_s} s")
            time.sleep(_STEP_S)
        _bind(source, path)

    def mount_home(self, file_system: str, path: Path) -> None:
        """Mount an EFS file system by its id."""
        _bind(self._file_systems / file_system, path)

    def make_home(self, user: str) -> None:
        """Create this user's home from /etc/skel if it is missing. Raises AgentError."""
        make_home(user, run)

    def sync_users(self, access: AccessPlan, admin_homes: str = HOMES) -> tuple[AccountChange, ...]:
        """Give this machine the accounts of the cluster's people; lock those of removed ones. Returns the changes.

        A machine with a single user has nobody else.
        """
        return () if self._has_one_user else sync_accounts(access, run, admin_homes=admin_homes)

    def as_user(self, user: str) -> Sequence[str]:
        """The words before a command that run it as this user of the system; empty if this machine has a single one."""
        return () if self._has_one_user else as_system_user(user)

    def journal(self, programs: Sequence[str], fields: str) -> str:
        """Nothing: a machine of the box has no journal."""
        return ""

    def set_up_lustre_efa(self, interfaces: int, mounts: Sequence[Path]) -> None:
        """Do nothing: a machine of the box has neither a Lustre client nor EFA."""

    def mount_lustre(self, dns_name: str, mount_name: str, path: Path) -> None:
        """Mount a Lustre file system."""
        _bind(self._file_systems / dns_name.split(".")[0], path)

    def mount_nvme(self, path: Path) -> None:
        """Create a world-writable directory: the machine has a single disk, deleted with it."""
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o1777)

    def requeue_at_shutdown(self, node: str) -> None:
        """Do nothing: a machine of the box ends as after a power cut."""

    def enable_gpu_persistence(self) -> None:
        """Do nothing: a GPU of the box is only a name."""

    def write_units(self, daemons: Sequence[Daemon]) -> None:
        """Do nothing: there is no systemd here."""

    def start(self, daemon: Daemon, options: Sequence[str] = ()) -> None:
        """Start the daemon with these options unless it runs. Raises HostError.

        A daemon in the pause before its restart counts as running.
        """
        install((self._boot_script,))
        if processes(daemon):
            return
        if not Path(daemon.command[0]).exists():
            raise HostError(f"cannot start {daemon.unit}: {daemon.command[0]} does not exist")
        for directory, mode in daemon.modes.items():
            Path(directory).mkdir(parents=True, exist_ok=True)
            shutil.chown(directory, daemon.user)
            Path(directory).chmod(mode)
        if self._has_one_user and daemon.unit == "slurmdbd":
            run(("mariadb", "--no-defaults", "--user=root", f"--socket={DATABASE_SOCKET}", "-e", _NO_PASSWORD))
        if daemon.prepared_by:
            run((*self._as_its_user(daemon), daemon.prepared_by))
        variables = ("env", *daemon.environment) if daemon.environment else ()
        command = (*self._as_its_user(daemon), *variables, *daemon.command, *daemon.foreground, *options)
        log = self._logs / f"{daemon.unit}.log"
        start_detached(supervise(command, on_failure=daemon.packaged), log)
        if daemon.socket and not listens(daemon.socket, self._listens_in_s):
            raise HostError(f"{daemon.unit} accepts no connections after {self._listens_in_s:g} s - see {log}")

    def _as_its_user(self, daemon: Daemon) -> Sequence[str]:
        """The command prefix that runs a daemon as its user."""
        if self._has_one_user:  # MariaDB must run as root by name: the agent connects as root
            name = "root" if daemon.user == "mysql" else daemon.user
            return (AS_USER, name) if daemon.packaged else ()
        return () if daemon.user == "root" else as_system_user(daemon.user)

    def restart(self, daemon: Daemon, mark: Path | None = None) -> None:
        """Stop the daemon and its supervisor, then start them again. Raises HostError if they do not end."""
        self.stop(daemon)
        self.start(daemon)
        if mark:
            mark.unlink(missing_ok=True)

    def stop(self, daemon: Daemon) -> None:
        """Stop the daemon and its supervisor. Raises HostError if they do not end."""
        until = time.monotonic() + _ENDS_IN_S
        while running := processes(daemon):
            for process in running:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGTERM)
            if time.monotonic() > until:
                raise HostError(f"{daemon.unit} did not end within {_ENDS_IN_S} s")
            time.sleep(_STEP_S)

    def reload_sshd(self) -> None:
        """Reload the settings of a running sshd."""
        with contextlib.suppress(OSError, ValueError):  # no file, or no process
            os.kill(int(self._sshd_pid.read_text(encoding="ascii")), signal.SIGHUP)

    def power_off(self) -> None:
        """Power off."""
        run((str(_POWEROFF),))


def with_search_domain(resolv_conf: str, zone: str) -> str:
    """Return resolv.conf with this zone first in its search list."""
    lines = resolv_conf.splitlines()
    zones = [name for line in lines if line.startswith("search ") for name in line.split()[1:]]
    others = [line for line in lines if not line.startswith("search ")]
    return "\n".join((*others, " ".join(("search", *dict.fromkeys((zone, *zones)))))) + "\n"


def _is_mounted(path: Path) -> bool:
    """True if anything is mounted at the path; os.path.ismount misses a bind mount within one file system."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return str(path) in {line.split()[4] for line in lines}


def _bind(source: Path, path: Path) -> None:
    if _is_mounted(path):
        return
    source.mkdir(parents=True, exist_ok=True)
    path.mkdir(parents=True, exist_ok=True)
    run(("mount", "--bind", str(source), str(path)))
