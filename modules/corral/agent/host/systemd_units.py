"""The systemd units of a machine on EC2, as text. Pure; `ec2` writes and starts them.

Source: NVIDIA Driver Persistence (docs.nvidia.com/deploy/driver-persistence).
"""

import shlex
from collections.abc import Sequence
from pathlib import Path

from corral.agent.host.base import Daemon
from corral.agent.imds_firewall import INTERFACES_IPV6

_DAEMON_UNIT = """[Unit]
Description={unit}
After=network-online.target munge.service slurmctld.service
Wants=network-online.target
RequiresMountsFor=/var/lib/corral

[Service]
ExecStart={command}
Restart=always
RestartSec=5
{limits}
[Install]
WantedBy=multi-user.target
"""
# Packages ship the units of Slurm and munge. Debian's slurmd.service requires a slurm.conf, which a node lacks: its
# slurmd fetches it from the head. A slurmctld that starts before its state is mounted would lose all jobs and nodes.
# Packages enable their units: a head that lost its power in its first boot started slurmctld with the package's munge
# key. No node answered it, and it requeued their jobs. So until a boot has ended, only the boot itself starts them.
BOOTING, BOOTED = "/run/corral/booting", "/var/lib/cloud/instance/corral-booted"
_DROP_IN = f"""[Unit]
ConditionPathExists=
ConditionPathExists=|{BOOTED}
ConditionPathExists=|{BOOTING}
RequiresMountsFor={{directories}}
"""
# Debian's units of slurmctld, slurmdbd and slurmd do not restart a crashed daemon. Those of munge (Restart=on-abort)
# and MariaDB (on-abnormal) do so only after an abort, or after a signal or timeout. The box restarts like this unit.
_RESTART = """
[Service]
{variables}{checks}Restart=on-failure
RestartSec=5
{limits}"""
# Debian 12's units of slurmctld and slurmdbd (22.05) name no user. They would start as root and write their logs into a
# directory of slurm's, also through a link that slurm has put there.
_USER = "User={user}\nGroup={user}\n"
# A mount that fails at a boot is not tried again (systemd.mount(5)), and without it jobs would run on an empty /home.
# The check fails then, and each restart wants the mount anew. With Requires=, an administrator's `umount` would end
# the daemon.
_MOUNTS = """Wants={units}
After={units}
"""
_MOUNT_CHECK = "ExecStartPre=/usr/bin/mountpoint --quiet {path}\n"
# From Slurm 23.11 on the packages' slurmd.service is Type=notify, and slurmd is ready once it has the configuration of
# the head. By default systemd kills it after 90 s, and a head may be away for longer.
_NO_LIMIT = "TimeoutStartSec=infinity\n"
# systemd may be slow to create the scope of jobs, and slurmd then ends. The next one uses the empty scope that came too
# late; systemd removes it when the first job ends, and every later job fails (seen with slurmd 24.11).
_EMPTY_SCOPES = (
    "ExecStartPre=-/bin/sh -c 'cd /sys/fs/cgroup/system.slice && for scope in *slurmstepd.scope; do"
    ' if grep -qs "populated 0" "$${scope}/cgroup.events"; then systemctl stop "$${scope}";'
    ' find "$${scope}" -depth -type d -exec rmdir {} +; fi; done; systemctl reset-failed "*slurmstepd.scope"\'\n'
)
# A unit, unlike `mount`, mounts the file system again after a reboot. systemd itself orders a mount with `_netdev`
# after the network. One of a local disk must not wait for it: it is ordered before local-fs.target (systemd.mount(5)).
_MOUNT_UNIT = """[Unit]
Description=corral: {path}

[Mount]
What={source}
Where={path}
Type={kind}
Options={options}

[Install]
WantedBy=multi-user.target
"""
# A compiler runs, a fork bomb and a notebook that reads all data end in their own slice: beyond MemoryMax one of that
# person's processes is killed. There is no MemoryHigh: without swap the kernel frees nothing there, and lets each
# process sleep up to 2 s for every few pages. Source: systemd.resource-control(5); the kernel's mm/memcontrol.c.
_USER_SLICE = """[Slice]
CPUQuota={quota}%
MemoryMax=33%
MemorySwapMax=0
TasksMax=1024
"""
# Read instead of it, because the name of its directory is the longer one (systemd.unit(5)).
ROOT_SLICE = """[Slice]
CPUQuota=
MemoryMax=infinity
TasksMax=infinity
"""
# Jobs of cron and at run in the slice of these services: Debian's PAM for them has no pam_systemd. Who is not in these
# files may not add any; a line that is nobody's name, as a comment, allows nobody (crontab(1), at.allow(5)).
ALLOWED_LATER = ("/etc/cron.allow", "/etc/at.allow")
# After a reboot systemd waits 90 s for a disk, and never tries again: whatever needs the disk stays off. A busy machine
# was seen to need longer, and then had no slurmctld and no agent.
DEVICE_DROP_IN = """[Unit]
JobRunningTimeoutSec=infinity
"""
# Before the network is up, and so before any user's program can run.
_FIREWALL_UNIT = """[Unit]
Description=corral: restrict the metadata service to root
DefaultDependencies=no
Before=network-pre.target
Wants=network-pre.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/ip -4 rule add {ipv4}
ExecStart=/bin/sh -c '! test -e {interfaces_ipv6} || exec /usr/sbin/ip -6 rule add {ipv6}'
ExecStop=-/usr/sbin/ip -4 rule del {ipv4}
ExecStop=-/usr/sbin/ip -6 rule del {ipv6}

[Install]
WantedBy=sysinit.target
"""
# Before slurmd, at each boot: disks are blank after a stop of the machine, and no job may start without them.
_INSTANCE_STORE_UNIT = """[Unit]
Description=corral: instance store at {path}
After=dlami-nvme.service
Before=slurmd.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/opt/corral/bin/corral-agent nvme {path}

[Install]
RequiredBy=slurmd.service
"""
# Without a permanent client the driver unloads the GPUs' state after each query and loads it again, which takes longer
# than the 4 s of a check. Ubuntu starts nvidia-persistenced with --no-persistence-mode, so nvidia-smi enables the mode
# afterwards; without the daemon it sets the kernel module's.
PERSISTENCE_WITHIN_S = 60
PERSISTENCE_UNIT = f"""[Unit]
Description=corral: NVIDIA persistence mode
Wants=nvidia-persistenced.service
After=nvidia-persistenced.service
Before=slurmd.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/nvidia-smi --persistence-mode=1
TimeoutStartSec={PERSISTENCE_WITHIN_S}

[Install]
WantedBy=multi-user.target
"""


SHUTDOWN = "corral-shutdown.service"
# Stopped before what it starts after: network, munge and slurmd still work when it talks to slurmctld.
SHUTDOWN_UNIT = """[Unit]
Description=corral: requeue the jobs of a machine that shuts down
After=network-online.target munge.service slurmd.service
Wants=network-online.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStop=/opt/corral/bin/corral-agent node-shutdown
TimeoutStopSec=60

[Install]
WantedBy=multi-user.target
"""
STEPS_DROP_IN = f"""[Unit]
Before={SHUTDOWN}
"""


def steps_scopes(node: str) -> tuple[str, ...]:
    """The scopes of the processes of jobs: slurmd's, and that of a slurmd built for several on a machine, as Debian's.

    systemd ends a scope without an order at once, together with all else. Source: Slurm's "Control Group v2 plugin",
    and a machine with Debian's slurmd 24.11.
    """
    return ("slurmstepd.scope", f"{node}_slurmstepd.scope")


def daemon_unit(daemon: Daemon) -> str:
    """The unit of one of the agent's own daemons, which no package ships."""
    return _DAEMON_UNIT.format(unit=daemon.unit, command=shlex.join(daemon.command), limits=_limits(daemon))


def packaged_drop_in(daemon: Daemon) -> str:
    """The addition to the unit of a daemon's package."""
    after = "".join(f"After={unit}.service\n" for unit in daemon.after)
    if daemon.mounts:
        after += _MOUNTS.format(units=" ".join(f"{escaped(Path(path))}.mount" for path in daemon.mounts))
    checks = "".join(_MOUNT_CHECK.format(path=path) for path in daemon.mounts)
    variables = "".join(f"Environment={variable}\n" for variable in daemon.environment)
    is_slurmd = daemon.waits_for_head
    checks += _EMPTY_SCOPES if is_slurmd else ""
    checks += f"ExecStartPre={daemon.prepared_by}\n" if daemon.prepared_by else ""
    variables += _USER.format(user=daemon.user) if daemon.user != "root" else ""
    limits = _limits(daemon) + (_NO_LIMIT if is_slurmd else "")
    service = _RESTART.format(variables=variables, checks=checks, limits=limits)
    return _DROP_IN.format(directories=" ".join(daemon.modes)) + after + service


def _limits(daemon: Daemon) -> str:
    return "".join(f"{limit}\n" for limit in daemon.limits)


def user_slice(vcpus: int) -> str:
    """The limits of each person on a login node with this many vCPUs: half of them, and a third of its memory."""
    return _USER_SLICE.format(quota=max(100, vcpus * 50))


def mount_unit(source: str, path: Path, kind: str, options: str) -> str:
    """The unit that mounts a file system; its name is `escaped(path)`."""
    return _MOUNT_UNIT.format(source=source, path=path, kind=kind, options=options)


def firewall_unit(ipv4: Sequence[str], ipv6: Sequence[str]) -> str:
    """The unit that adds these routing rules, that of IPv6 if the kernel has it."""
    return _FIREWALL_UNIT.format(ipv4=shlex.join(ipv4), ipv6=shlex.join(ipv6), interfaces_ipv6=INTERFACES_IPV6)


def instance_store_unit(path: Path) -> str:
    """The unit that mounts the instance store at this path."""
    return _INSTANCE_STORE_UNIT.format(path=path)


def escaped(path: Path) -> str:
    """The path for a unit name; only dashes need escapes, by the rules for names (systemd.unit(5))."""
    return str(path).strip("/").replace("-", r"\x2d").replace("/", "-")
