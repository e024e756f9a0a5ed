"""A machine on EC2: packages, daemons, EBS volumes, EFS and Lustre mounts, and the instance store.

Everything runs as commands, which tests compare one by one. `systemd_units` has the texts of the units.
Sources: EBS User Guide, "Map Amazon EBS volumes to NVMe device names"; EFS User Guide, "Mounting with the NFS client"
(recommended options); FSx for Lustre User Guide, "Mounting from an Amazon EC2 instance"; mount.lustre(8).
"""

import contextlib
import logging
import os
import shlex
import time
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address
from pathlib import Path

from corral.agent import imds_firewall
from corral.agent.file_install import HEADER, Placement, install
from corral.agent.host.base import Daemon, HostError, as_system_user
from corral.agent.host.instance_store import mount_instance_store
from corral.agent.host.lustre_client import (
    MODULES,
    MachineSize,
    default_interface,
    efa_devices,
    efa_unit,
    module_options,
    tuning_unit,
)
from corral.agent.host.package_hooks import without_hooks
from corral.agent.host.packages import (
    CONFIGURE,
    UPDATE,
    UPDATERS,
    Package,
    archives,
    file_commands,
    hold_command,
    install_command,
    key_commands,
    missing_packages,
    of_archives,
)
from corral.agent.host.systemd_units import (
    ALLOWED_LATER,
    BOOTING,
    DEVICE_DROP_IN,
    PERSISTENCE_UNIT,
    PERSISTENCE_WITHIN_S,
    ROOT_SLICE,
    SHUTDOWN,
    SHUTDOWN_UNIT,
    STEPS_DROP_IN,
    daemon_unit,
    escaped,
    firewall_unit,
    instance_store_unit,
    mount_unit,
    packaged_drop_in,
    steps_scopes,
    user_slice,
)
from corral.agent.user_rights import SUDOERS, overriding_sudoers, primary_memberships, root_memberships
from corral.agent.users.accounts import AccountChange
from corral.agent.users.homes import make_home
from corral.agent.users.sync import sync_accounts
from corral.model.partitions import partition_of
from corral.model.users import HOMES, AccessPlan

_BY_ID = "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_{serial}"
_ATTACHED_IN_S = 120  # a volume is attached after its machine has started
_STEP_S = 1.0
_UNITS = "/etc/systemd/system"
_UPDATES = 20  # apt-daily may hold the lists' lock at the first boot, and apt does not wait for it
_UPDATE_STEP_S = 5.0
# Root of one node owns what it writes there: no other machine may run that as root.
_SHARED = "nosuid,nodev"
_NFS = f"nfsvers=4.1,rsize=1048576,wsize=1048576,hard,timeo=600,retrans=2,noresvport,_netdev,{_SHARED}"
# With `nofail` no early boot waits for a lost volume: only the units that require the mount do (systemd.mount(5)).
# slurmctld flushes its list of jobs, but not their scripts, and exits over a script that a power cut has left empty, at
# each start again. With `nodelalloc` a flush writes all files before it (ext4(5), data=ordered).
_EXT4 = "noatime,nofail,nodelalloc"
# No write per read, locks across machines, and a `df` that does not wait for a lost server.
_LUSTRE = f"noatime,flock,lazystatfs,_netdev,{_SHARED}"

# systemd has read the unit already: reading all units again takes a tenth of a second, and a boot enables a dozen.
_ENABLE = ("systemctl", "enable", "--no-reload")
# Otherwise the package's SysV script is enabled too, which reads all units twice (systemd, docs/ENVIRONMENT.md).
_ENABLE_PACKAGED = ("env", "SYSTEMCTL_SKIP_SYSV=1", *_ENABLE)
_RELOAD = ("systemctl", "daemon-reload")

# By default systemd-networkd removes foreign rules whenever it starts (networkd.conf(5)).
_FOREIGN_RULES = """[Network]
ManageForeignRoutingPolicyRules=no
"""
# The packages that apt is installing: a program may exist before its package is complete.
_HALF_INSTALLED = "/opt/corral/installing"

_CURSOR = "/opt/corral/journal-cursor"  # on the root disk, as the journal

log = logging.getLogger("corral.agent")


def own_size() -> MachineSize:
    """Return the size of this machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return MachineSize(vcpus=os.cpu_count() or 1, memory_mib=memory // 2**20)


class Ec2Host:
    """`run`: runs a command and returns its output, or raises HostError. `root`: the root of written files.

    `size`: the machine's size. `wait`: waits this many seconds.
    """

    def __init__(
        self,
        run: Callable[[Sequence[str]], str],
        region: str,
        root: Path = Path("/"),
        attached_in_s: float = _ATTACHED_IN_S,
        *,
        size: MachineSize | None = None,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._run = run
        self._size = size or own_size()
        self._wait = wait
        self._region = region
        self._root = root
        self._attached_in_s = attached_in_s

    def stop_updates(self) -> None:
        """Disable automatic package upgrades; a running upgrade continues."""
        with contextlib.suppress(HostError):  # the image may lack one; the others stop all the same
            self._run(("systemctl", "stop", "--no-block", *UPDATERS))
        with contextlib.suppress(HostError):
            self._run(("systemctl", "mask", "--no-reload", *UPDATERS))

    def install(self, packages: Sequence[Package]) -> None:
        """Install and hold the packages that the image lacks, in their versions. Raises HostError."""
        half = self._root / _HALF_INSTALLED.lstrip("/")
        again = half.read_text(encoding="ascii").split() if half.exists() else []
        lacks = missing_packages(packages, lambda program: (self._root / program.lstrip("/")).exists())
        missing = tuple(package for package in packages if package in lacks or package.name in again)
        if not missing:
            return
        began = time.monotonic()
        names = [package.name for package in missing]
        install((Placement(path=_HALF_INSTALLED, content=" ".join(names).encode()),), self._root)
        if again:
            with without_hooks(self._root):
                self._run(CONFIGURE)
            self._run(_RELOAD)
        for package in missing:  # first: Systems Manager shows what stops the rest
            self._install_from_file(package)
        if apts := of_archives(missing):
            self._install_from_archives(apts)
        half.unlink()
        log.info("install %s, which the image lacks: %.0f s", ", ".join(names), time.monotonic() - began)

    def build(self, script: Path, *arguments: str) -> None:
        """Run a script of the cluster that compiles programs for this machine. Raises HostError."""
        self._run((str(script), *arguments))

    def set_name(self, name: str, address: IPv4Address) -> None:
        """Set the host name, which resolves to this address on the machine itself.

        Otherwise systemd-resolved answers with all addresses of the machine, also the link-local one of IPv6, which
        getaddrinfo may sort first. Debian's cloud images write /etc/hosts anew at each boot.
        """
        self._run(("hostnamectl", "set-hostname", name))
        self._write("/etc/cloud/cloud.cfg.d/60-corral.cfg", "manage_etc_hosts: false\n")
        known = self._read("etc/hosts")
        install((Placement(path="/etc/hosts", content=with_name(known, name, address).encode()),), self._root)

    def restrict_metadata(self) -> None:
        """Restrict the metadata service to root, now and after every boot."""
        if self._write("/etc/systemd/networkd.conf.d/60-corral.conf", _FOREIGN_RULES):
            self._run(("systemctl", "try-restart", "systemd-networkd"))
        rules = [imds_firewall.rule(one) or () for one in (imds_firewall.IPV4, imds_firewall.IPV6)]
        self._write_unit("corral-fence.service", firewall_unit(*rules))
        self._run((*_ENABLE, "--now", "corral-fence"))
        reachable = imds_firewall.reachable_addresses(self._root)
        if not all(self._run(one.list_command).strip() for one in reachable):
            self._run(("systemctl", "restart", "corral-fence"))  # for systemd it is active

    def restrict_users(self) -> None:
        """Take people out of the groups whose members become root. Raises HostError if sudo lets users become root."""
        passwd, groups = self._read("etc/passwd"), self._read("etc/group")
        if primary := primary_memberships(passwd, groups):
            named = ", ".join(f"{user} {group}" for user, group in primary)
            raise HostError(f"users have a primary group whose members become root: {named} - change it in the image")
        for user, group in root_memberships(passwd, groups):
            self._run(("gpasswd", "--delete", user, group))
        drop_ins = self._root / "etc/sudoers.d"
        names = [file.name for file in drop_ins.iterdir()] if drop_ins.exists() else []
        sudoers = self._read("etc/sudoers")
        if sudoers and (later := overriding_sudoers(sudoers, names)):
            raise HostError(
                f"sudo may let users become root: it reads {'; '.join(later)} after {SUDOERS} - change it in the image"
            )

    def limit_people(self) -> None:
        """Limit what the processes of each person use together: of the CPUs, of the memory, and their number.

        systemd applies changed settings to the slices of those who are logged in. What cron and at start for them would
        be outside of these.
        """
        everybody = self._write(f"{_UNITS}/user-.slice.d/60-corral.conf", user_slice(self._size.vcpus))
        root = self._write(f"{_UNITS}/user-0.slice.d/60-corral.conf", ROOT_SLICE)
        if everybody or root:
            self._run(_RELOAD)
        for path in ALLOWED_LATER:
            self._write(path, "root\n")

    def set_search_domain(self, zone: str) -> None:
        """Look up names without a dot in this zone too; EC2's zone from DHCP stays."""
        if self._write("/etc/systemd/resolved.conf.d/60-corral.conf", f"[Resolve]\nDomains={zone}\n"):
            self._run(("systemctl", "restart", "systemd-resolved"))

    def mount_volume(self, volume_id: str, path: Path) -> None:
        """Mount a volume; wait for its attachment, and format it if it is blank. Raises HostError."""
        device = _BY_ID.format(serial=volume_id.replace("-", ""))
        until = time.monotonic() + self._attached_in_s
        while not (self._root / device.lstrip("/")).exists():
            if time.monotonic() > until:
                raise HostError(f"volume {volume_id} was not attached within {self._attached_in_s} s: no {device}")
            time.sleep(_STEP_S)
        # wipefs only lists signatures, and reads the disk itself. lsblk relies on udev, which may not know a new disk
        # yet, and mkfs.ext4 asks before it overwrites a file system only on a terminal (e2fsprogs, mke2fs.c).
        if not self._run(("wipefs", "--noheadings", "--output=TYPE", device)).strip():
            self._run(("mkfs.ext4", "-q", "-L", "corral-state", device))
        self._write(f"{_UNITS}/{escaped(Path(device))}.device.d/corral.conf", DEVICE_DROP_IN)
        self._mount(device, path, "ext4", _EXT4)

    def mount_home(self, file_system: str, path: Path) -> None:
        """Mount an EFS file system by its id."""
        self._mount(f"{file_system}.efs.{self._region}.{partition_of(self._region).dns_suffix}:/", path, "nfs4", _NFS)

    def make_home(self, user: str) -> None:
        """Create this user's home from /etc/skel if it is missing. Raises AgentError."""
        make_home(user, self._run, self._root)

    def sync_users(self, access: AccessPlan, admin_homes: str = HOMES) -> tuple[AccountChange, ...]:
        """Give this machine the accounts of the cluster's people; lock those of removed ones. Returns the changes."""
        return sync_accounts(access, self._run, self._root, admin_homes=admin_homes)

    def as_user(self, user: str) -> Sequence[str]:
        """The words before a command that run it as this user of the system."""
        return as_system_user(user)

    def journal(self, programs: Sequence[str], fields: str) -> str:
        """The lines that these programs wrote into the system's journal since the last call, as JSON. Raises HostError.

        The first call of a machine returns all of them.
        """
        matches = " + ".join(f"_EXE={program}" for program in programs).split()
        return self._run(
            (
                "journalctl",
                "--quiet",
                "--output=json",
                f"--output-fields={fields}",
                f"--cursor-file={_CURSOR}",
                *matches,
            )
        )

    def set_up_lustre_efa(self, interfaces: int, mounts: Sequence[Path]) -> None:
        """Let Lustre use EFA interfaces before these mounts. On failure log a warning: the mounts use TCP."""
        self._write_modules()
        devices = efa_devices(self._root / "sys/class/infiniband", interfaces)
        if len(devices) < interfaces:
            log.warning("Lustre: %d of %d EFA interfaces exist", len(devices), interfaces)
        if not devices:
            return
        units = [f"{escaped(path)}.mount" for path in mounts]
        try:
            primary = default_interface(self._run(("ip", "-json", "-4", "route", "show", "default")))
            self._write_unit("corral-lustre-efa.service", efa_unit(primary, devices, units))
            self._run((*_ENABLE, "corral-lustre-efa"))
            self._run(("systemctl", "start", "corral-lustre-efa"))
        except (HostError, ValueError, KeyError) as error:  # the last two: no default route
            log.warning("Lustre uses TCP instead of EFA: %s", error)

    def mount_lustre(self, dns_name: str, mount_name: str, path: Path) -> None:
        """Mount a Lustre file system and tune its client, now and after every boot."""
        self._write_modules()
        mount = f"{escaped(path)}.mount"
        tuning = f"corral-lustre-{escaped(path)}.service"
        self._write_unit(tuning, tuning_unit(self._size, mount))
        self._run((*_ENABLE, tuning))
        self._mount(f"{dns_name}@tcp:/{mount_name}", path, "lustre", _LUSTRE)

    def mount_nvme(self, path: Path) -> None:
        """Mount the instance store as one world-writable file system, now and after every boot. Raises HostError."""
        mount_instance_store(self._run, path, self._root)
        self._write_unit("corral-nvme.service", instance_store_unit(path))
        self._run((*_ENABLE, "corral-nvme"))

    def requeue_at_shutdown(self, node: str) -> None:
        """Requeue the jobs of this node when the machine shuts down, before their processes end. slurmd has started."""
        for scope in steps_scopes(node):
            self._write(f"{_UNITS}/{scope}.d/corral.conf", STEPS_DROP_IN)
        self._write_unit(SHUTDOWN, SHUTDOWN_UNIT)
        self._run((*_ENABLE, SHUTDOWN))
        self._run(("systemctl", "start", "--no-block", SHUTDOWN))  # it starts after slurmd, which waits for the head

    def enable_gpu_persistence(self) -> None:
        """Enable GPU persistence mode. On failure log a warning; the health check reports the cause."""
        self._write_unit("corral-persistence.service", PERSISTENCE_UNIT)
        self._run((*_ENABLE, "corral-persistence"))
        # The timeout ends systemctl only: nvidia-smi may hang in the kernel, where no signal reaches it.
        try:
            self._run(("timeout", str(PERSISTENCE_WITHIN_S), "systemctl", "start", "corral-persistence"))
        except HostError as error:
            log.warning("GPUs: %s", error)

    def write_units(self, daemons: Sequence[Daemon]) -> None:
        """Write the units of these daemons, or additions to those of their packages."""
        if install(tuple(map(_unit_of, daemons)), self._root):
            self._run(_RELOAD)

    def start(self, daemon: Daemon, options: Sequence[str] = ()) -> None:
        """Start the daemon's unit, now and at every boot. Debian's units read their options from /etc/default.

        A running daemon is restarted: Debian's munge package starts munged with a key of its own. If the head does not
        answer, slurmd fails and is restarted by its unit, while this machine's watcher decides how long it waits.
        """
        for directory, mode in daemon.modes.items():
            self._run(("install", "-d", f"--owner={daemon.user}", f"--mode={mode:o}", directory))
        if options:
            variable = f"{daemon.unit.upper()}_OPTIONS"
            self._write(f"/etc/default/{daemon.unit}", f"{variable}={shlex.quote(shlex.join(options))}\n")
        self.write_units((daemon,))  # a boot has written it already
        self._write(BOOTING, "Units of packages may start.\n")
        self._run((*(_ENABLE_PACKAGED if daemon.packaged else _ENABLE), daemon.unit))
        wait = ("--no-block",) if daemon.waits_for_head else ()
        self._run(("systemctl", "restart", *wait, daemon.unit))

    def restart(self, daemon: Daemon, mark: Path | None = None) -> None:
        """Restart the daemon's unit; with a mark, from a transient unit that outlives the daemon's."""
        command: tuple[str, ...] = ("systemctl", "restart", daemon.unit)
        if mark:
            script = f"{shlex.join(command)} && rm -f {shlex.quote(str(mark))}"
            command = ("systemd-run", "--quiet", "--collect", "--wait", "/bin/sh", "-c", script)
        self._run(command)

    def stop(self, daemon: Daemon) -> None:
        """Stop the daemon's unit, now and at every boot. Raises HostError."""
        self._run(("systemctl", "disable", "--now", daemon.unit))

    def reload_sshd(self) -> None:
        """Reload the settings of a running sshd. On failure log a warning.

        A restart ends no session (KillMode=process in Debian's and Ubuntu's ssh.service), and unlike SIGHUP it works
        also for a socket-activated sshd, as Ubuntu's since 22.10.
        """
        try:
            self._run(("systemctl", "try-restart", "ssh"))
        except HostError as error:
            log.warning("sshd: %s", error)

    def power_off(self) -> None:
        """Power off."""
        self._run(("systemctl", "poweroff"))

    def _install_from_file(self, package: Package) -> None:
        try:
            for command in file_commands(package):
                self._run(command)
        except HostError as error:
            if package.required:
                raise
            log.warning("%s is not installed: %s", package.name, error)

    def _install_from_archives(self, packages: Sequence[Package]) -> None:
        for command in key_commands(packages):
            self._run(command)
        install(archives(packages), self._root)
        self._update()
        kernel = self._run(("uname", "--kernel-release")).strip()
        with without_hooks(self._root):
            try:
                self._run(install_command(packages, kernel))
            except HostError as error:
                raise HostError(f"{error}{_hint(packages)}") from error
        self._run(_RELOAD)
        self._run(hold_command(packages, kernel))

    def _update(self) -> None:
        """Fetch the package lists; retry while another process holds their lock."""
        for left in reversed(range(_UPDATES)):
            try:
                self._run(UPDATE)
            except HostError:
                if not left:
                    raise
                self._wait(_UPDATE_STEP_S)
            else:
                return

    def _read(self, path: str) -> str:
        file = self._root / path
        return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""

    def _write_modules(self) -> None:
        if options := module_options(self._size):
            self._write(MODULES, options)

    def _mount(self, source: str, path: Path, kind: str, options: str) -> None:
        unit = f"{escaped(path)}.mount"
        self._write_unit(unit, mount_unit(source, path, kind, options))
        self._run((*_ENABLE, "--now", unit))

    def _write_unit(self, name: str, text: str) -> None:
        if self._write(f"{_UNITS}/{name}", text):
            self._run(_RELOAD)

    def _write(self, path: str, text: str) -> tuple[str, ...]:
        """Write the file; return its path if it changed."""
        return install((Placement(path=path, content=f"{HEADER}{text}".encode()),), self._root)


def _unit_of(daemon: Daemon) -> Placement:
    """A daemon's unit, or the addition to that of its package."""
    unit = f"{_UNITS}/{daemon.unit}.service"
    path, text = (f"{unit}.d/corral.conf", packaged_drop_in(daemon)) if daemon.packaged else (unit, daemon_unit(daemon))
    return Placement(path=path, content=f"{HEADER}{text}".encode())


def with_name(hosts: str, name: str, address: IPv4Address) -> str:
    """Return /etc/hosts with this name at this address alone."""
    lines = (_without(line, name) for line in hosts.splitlines())
    return "\n".join((*(line for line in lines if line is not None), f"{address} {name}")) + "\n"


def _without(line: str, name: str) -> str | None:
    """A line of /etc/hosts without this name; None if it had no other."""
    entry, mark, comment = line.partition("#")
    address, *names = entry.split() or [""]
    if name not in names:
        return line
    left = [other for other in names if other != name]
    return " ".join((address, *left, *((mark + comment,) if mark else ()))) if left else None


def _hint(packages: Sequence[Package]) -> str:
    """The hint for a failed install of a package that fits one kernel."""
    if any(package.of_kernel for package in packages):
        return (
            " - if the Lustre client for this kernel is missing, use an image with an older kernel or with the client"
        )
    return ""
