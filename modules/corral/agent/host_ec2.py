"""A machine on EC2: packages, systemd, EBS volumes as NVMe disks, EFS and Lustre by their clients, disks of its own.

The command lines are all there is to it, so a test can hold them one by one.
Sources: EBS User Guide, "Map Amazon EBS volumes to NVMe device names"; EFS User Guide, "Mounting with the NFS client"
(recommended options); FSx for Lustre User Guide, "Mounting from an Amazon EC2 instance"; mount.lustre(8); NVIDIA Driver
Persistence (docs.nvidia.com/deploy/driver-persistence).
"""

import contextlib
import logging
import os
import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from corral.agent import fence
from corral.agent.homes import make_home
from corral.agent.hosts import Daemon, HostError
from corral.agent.install import Placement, install
from corral.agent.lustre_client import MODULES, Size, module_options, tuning_unit
from corral.agent.nvme import mount_own_disks
from corral.agent.packages import (
    CONFIGURE,
    UPDATE,
    UPDATERS,
    Package,
    archives,
    hold_command,
    install_command,
    key_commands,
    lacking,
)

_BY_ID = "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_{serial}"
_ATTACHED_IN_S = 120  # a volume is attached after its machine has started
_STEP_S = 1.0
_UPDATES = 20  # apt-daily of a first boot may have the lists; apt does not wait for their lock
_UPDATE_STEP_S = 5.0
_NFS = "nfsvers=4.1,rsize=1048576,wsize=1048576,hard,timeo=600,retrans=2,noresvport,_netdev"
# No write for each read, locks that all machines see, and no `df` that waits for a server which is away.
_LUSTRE = "noatime,flock,lazystatfs,_netdev"

# The units of Slurm and munge come with their packages.
_HEADER = "# Managed by corral: written by `corral-agent boot`.\n"
_UNIT = """[Unit]
Description={unit}
After=network-online.target munge.service slurmctld.service
Wants=network-online.target
RequiresMountsFor=/var/lib/corral

[Service]
ExecStart={command}
Restart=always
RestartSec=5

[Install]
WantedBy=multi-user.target
"""
# Debian's slurmd.service wants a slurm.conf, which a node does not have: its slurmd fetches it from the head. And a
# slurmctld that starts before its state is mounted would begin with no job and no node.
_DROP_IN = """[Unit]
ConditionPathExists=
RequiresMountsFor={directories}
"""
# Debian's units of slurmctld, slurmdbd and slurmd do not start again what has crashed. That of munge does after an
# abort alone (Restart=on-abort), that of MariaDB 5 s after any signal or timeout (on-abnormal). The box does as these.
_AGAIN = """
[Service]
{variables}Restart=on-failure
RestartSec=5
"""
# A unit, unlike `mount`, brings the file system back after a reboot, and can be started again.
_MOUNT_UNIT = """[Unit]
Description=corral: {place}
After=network-online.target
Wants=network-online.target

[Mount]
What={source}
Where={place}
Type={kind}
Options={options}

[Install]
WantedBy=multi-user.target
"""


# systemd-networkd removes rules that it did not make whenever it starts, unless it is told not to (networkd.conf(5)).
_FOREIGN_RULES = """[Network]
ManageForeignRoutingPolicyRules=no
"""
# Before there is a network, and so before any program of a user's can be.
_FENCE = """[Unit]
Description=corral: the metadata service is root's alone
DefaultDependencies=no
Before=network-pre.target
Wants=network-pre.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/ip rule add {rule}
ExecStop=/usr/sbin/ip rule del {rule}

[Install]
WantedBy=sysinit.target
"""
# Before slurmd, at each boot: disks come back blank where the machine was stopped. Without them no job shall begin.
_DISKS = """[Unit]
Description=corral: the machine's own disks at {place}
After=dlami-nvme.service
Before=slurmd.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/opt/corral/bin/corral-agent nvme {place}

[Install]
RequiredBy=slurmd.service
"""
# Without a client that stays, the driver forgets the GPUs after each question and begins anew, which takes it more than
# the 4 s of a check. Ubuntu starts its nvidia-persistenced with --no-persistence-mode, so nvidia-smi has the last word;
# where there is no such daemon it tells the kernel's module.
_AWAKE_IN_S = 60
_PERSISTENCE = f"""[Unit]
Description=corral: the NVIDIA driver keeps the state of the GPUs
Wants=nvidia-persistenced.service
After=nvidia-persistenced.service
Before=slurmd.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/nvidia-smi --persistence-mode=1
TimeoutStartSec={_AWAKE_IN_S}

[Install]
WantedBy=multi-user.target
"""
# What apt is at: a program may be there before its package is whole.
_HALF_INSTALLED = "/opt/corral/installing"

log = logging.getLogger("corral.agent")


def own_size() -> Size:
    """How large this machine is."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Size(vcpus=os.cpu_count() or 1, memory_mib=memory // 2**20)


class Ec2Host:
    """`run`: runs a command and returns what it printed, or raises HostError. `root`: where files are written.

    `size`: that of the machine. `wait`: waits as many seconds as it is told.
    """

    def __init__(
        self,
        run: Callable[[Sequence[str]], str],
        region: str,
        root: Path = Path("/"),
        attached_in_s: float = _ATTACHED_IN_S,
        *,
        size: Size | None = None,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._run = run
        self._size = size or own_size()
        self._wait = wait
        self._region = region
        self._root = root
        self._attached_in_s = attached_in_s

    def stop_updates(self) -> None:
        """From now on no package is upgraded by itself; what is being upgraded now goes on."""
        for unit in UPDATERS:
            with contextlib.suppress(HostError):  # an image may have none of them
                self._run(("systemctl", "stop", "--no-block", unit))
            with contextlib.suppress(HostError):
                self._run(("systemctl", "mask", unit))

    def install(self, packages: Sequence[Package]) -> None:
        """Installs what the image lacks of these, in the versions that they name, and holds it. Raises HostError."""
        half = self._root / _HALF_INSTALLED.lstrip("/")
        again = half.read_text(encoding="ascii").split() if half.exists() else []
        lacks = {
            package.name for package in lacking(packages, lambda program: (self._root / program.lstrip("/")).exists())
        }
        missing = tuple(package for package in packages if package.name in (*lacks, *again))
        if not missing:
            return
        began = time.monotonic()
        for command in key_commands(missing):
            self._run(command)
        install(archives(missing), self._root)
        self._update()
        kernel = self._run(("uname", "--kernel-release")).strip()
        names = [package.name for package in missing]
        install((Placement(path=_HALF_INSTALLED, content=" ".join(names).encode()),), self._root)
        try:
            if again:
                self._run(CONFIGURE)
            self._run(install_command(missing, kernel))
        except HostError as error:
            raise HostError(f"{error}{_hint(missing)}") from error
        self._run(hold_command(missing, kernel))
        half.unlink()
        log.info("install %s, which the image lacks: %.0f s", ", ".join(names), time.monotonic() - began)

    def set_name(self, name: str) -> None:
        """Gives the machine this host name."""
        self._run(("hostnamectl", "set-hostname", name))

    def fence_metadata(self) -> None:
        """Lets nobody but root reach the metadata service, now and after every boot."""
        if self._write("/etc/systemd/networkd.conf.d/60-corral.conf", _FOREIGN_RULES):
            self._run(("systemctl", "try-restart", "systemd-networkd"))
        self._write_unit("corral-fence.service", _FENCE.format(rule=shlex.join(fence.rule() or ())))
        self._run(("systemctl", "enable", "--now", "corral-fence"))

    def search(self, zone: str) -> None:
        """Lets names without a dot be looked up in this zone too; EC2's own, from its DHCP, stays."""
        if self._write("/etc/systemd/resolved.conf.d/60-corral.conf", f"[Resolve]\nDomains={zone}\n"):
            self._run(("systemctl", "restart", "systemd-resolved"))

    def mount_volume(self, volume_id: str, place: Path) -> None:
        """Mounts a volume that is attached or will be soon; one without a file system gets one. Raises HostError."""
        device = _BY_ID.format(serial=volume_id.replace("-", ""))
        until = time.monotonic() + self._attached_in_s
        while not (self._root / device.lstrip("/")).exists():
            if time.monotonic() > until:
                raise HostError(f"volume {volume_id} was not attached within {self._attached_in_s} s: no {device}")
            time.sleep(_STEP_S)
        # wipefs only lists, and reads the disk itself. lsblk asks udev, who knows nothing of a disk that just came; and
        # mkfs.ext4 asks before it overwrites a file system, but only on a terminal (e2fsprogs, mke2fs.c).
        if not self._run(("wipefs", "--noheadings", "--output=TYPE", device)).strip():
            self._run(("mkfs.ext4", "-q", "-L", "corral-state", device))
        self._mount(device, place, "ext4", "noatime")

    def mount_home(self, file_system: str, place: Path) -> None:
        """Mounts an EFS file system by its id."""
        self._mount(f"{file_system}.efs.{self._region}.amazonaws.com:/", place, "nfs4", _NFS)

    def make_home(self, user: str) -> None:
        """Makes the user's home of the system's skeleton, where it is not there. Raises HostError."""
        make_home(user, self._run, self._root)

    def mount_lustre(self, dns_name: str, mount_name: str, place: Path) -> None:
        """Mounts a Lustre file system as its clients do, and tunes the client, now and after every boot."""
        if options := module_options(self._size):
            self._write(MODULES, options)
        mount = f"{_escaped(place)}.mount"
        tuning = f"corral-lustre-{_escaped(place)}.service"
        self._write_unit(tuning, tuning_unit(self._size, mount))
        self._run(("systemctl", "enable", tuning))
        self._mount(f"{dns_name}@tcp:/{mount_name}", place, "lustre", _LUSTRE)

    def mount_nvme(self, place: Path) -> None:
        """Mounts the machine's own disks as one, for everybody, now and after every boot. Raises HostError."""
        mount_own_disks(self._run, place, self._root)
        self._write_unit("corral-nvme.service", _DISKS.format(place=place))
        self._run(("systemctl", "enable", "corral-nvme"))

    def wake_gpus(self) -> None:
        """Keeps the NVIDIA driver's state. Where that fails, or takes too long, the check of the health says why."""
        self._write_unit("corral-persistence.service", _PERSISTENCE)
        self._run(("systemctl", "enable", "corral-persistence"))
        # Only the question is ended: nvidia-smi hangs in the kernel at times, where nothing ends it.
        try:
            self._run(("timeout", str(_AWAKE_IN_S), "systemctl", "start", "corral-persistence"))
        except HostError as error:
            log.warning("GPUs: %s", error)

    def start(self, daemon: Daemon, options: Sequence[str] = ()) -> None:
        """Starts the daemon's unit, now and at every boot. Debian's units read their options from /etc/default.

        One that runs is restarted: installing Debian's package of munge has started it, with a key of its own.
        """
        for directory in daemon.owned:
            self._run(("install", "-d", f"--owner={daemon.user}", directory))
        if options:
            variable = f"{daemon.unit.upper()}_OPTIONS"
            self._write(f"/etc/default/{daemon.unit}", f"{variable}={shlex.quote(shlex.join(options))}\n")
        if daemon.packaged:
            after = "".join(f"After={unit}.service\n" for unit in daemon.after)
            variables = "".join(f"Environment={variable}\n" for variable in daemon.environment)
            text = _DROP_IN.format(directories=" ".join(daemon.owned)) + after + _AGAIN.format(variables=variables)
            self._write_unit(f"{daemon.unit}.service.d/corral.conf", text)
        else:
            text = _UNIT.format(unit=daemon.unit, command=shlex.join(daemon.command))
            self._write_unit(f"{daemon.unit}.service", text)
        self._run(("systemctl", "enable", daemon.unit))
        self._run(("systemctl", "restart", daemon.unit))

    def restart(self, daemon: Daemon, mark: Path | None = None) -> None:
        """Restarts the daemon's unit. With a mark by a unit of its own, which does not end with the daemon's."""
        command: tuple[str, ...] = ("systemctl", "restart", daemon.unit)
        if mark:
            script = f"{shlex.join(command)} && rm -f {shlex.quote(str(mark))}"
            command = ("systemd-run", "--quiet", "--collect", "--wait", "/bin/sh", "-c", script)
        self._run(command)

    def reload_sshd(self) -> None:
        """Lets sshd read its settings anew, where it runs. Where that fails, the log says why.

        A restart ends no session (KillMode=process in Debian's and Ubuntu's ssh.service), and unlike SIGHUP it is the
        same for a sshd that got its socket from systemd, as Ubuntu's since 22.10.
        """
        try:
            self._run(("systemctl", "try-restart", "ssh"))
        except HostError as error:
            log.warning("sshd: %s", error)

    def power_off(self) -> None:
        """Ends this machine."""
        self._run(("systemctl", "poweroff"))

    def _update(self) -> None:
        """Fetches the lists of packages, as soon as nobody else does."""
        for left in reversed(range(_UPDATES)):
            try:
                self._run(UPDATE)
            except HostError:
                if not left:
                    raise
                self._wait(_UPDATE_STEP_S)
            else:
                return

    def _mount(self, source: str, place: Path, kind: str, options: str) -> None:
        text = _MOUNT_UNIT.format(source=source, place=place, kind=kind, options=options)
        unit = f"{_escaped(place)}.mount"
        self._write_unit(unit, text)
        self._run(("systemctl", "enable", "--now", unit))

    def _write_unit(self, name: str, text: str) -> None:
        if self._write(f"/etc/systemd/system/{name}", text):
            self._run(("systemctl", "daemon-reload"))

    def _write(self, path: str, text: str) -> tuple[str, ...]:
        """The path, if the file was not so already."""
        return install((Placement(path=path, content=f"{_HEADER}{text}".encode()),), self._root)


def _escaped(place: Path) -> str:
    """The path as systemd names units by it; the rules for names leave only dashes to hide (systemd.unit(5))."""
    return str(place).strip("/").replace("-", r"\x2d").replace("/", "-")


def _hint(packages: Sequence[Package]) -> str:
    """What a person can do where a package is missing that fits one kernel."""
    if any(package.of_kernel for package in packages):
        return " - if it is Lustre's client for this kernel, name an image with an older one, or with the client in it"
    return ""
