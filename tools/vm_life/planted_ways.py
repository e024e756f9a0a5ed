"""Ways to root that root plants on a machine for a moment, so that the program that looks for such ways finds each.

A probe that finds nothing proves something only if it finds what is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

NAME = "corral-planted"
_BIN, _LIB, _ETC = f"/usr/local/bin/{NAME}", f"/var/lib/{NAME}", f"/etc/{NAME}"
_TMP = f"/var/tmp/{NAME}"  # noqa: S108 - where everybody may make it
_UNIT, _CRON = f"/etc/systemd/system/{NAME}.service", f"/etc/cron.d/{NAME}"
_SERVICES = "/usr/local/share/dbus-1/system-services"
_BUS = f"{_SERVICES}/org.corral.Planted.service"
_RULES, _SOCKET, _GROUP = f"/etc/polkit-1/rules.d/00-{NAME}.rules", f"/run/{NAME}.sock", "docker"
_SYS_ADMIN = 21  # a capability. Source: linux/capability.h
_UNITS = "org.freedesktop.systemd1.manage-units"
# The attribute of a program that gets CAP_SYS_ADMIN whoever runs it: version 2, effective, permitted.
_CAPABILITY = f'import os, struct; value = struct.pack("<5I", 0x02000001, 1 << {_SYS_ADMIN}, 0, 0, 0)'
_LISTEN = f'import os, signal, socket; one = socket.socket(socket.AF_UNIX); one.bind("{_SOCKET}")'
_RULE = f'polkit.addRule(function(action, subject) {{ if (action.id == "{_UNITS}") return polkit.Result.YES; }});'


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """A way to root. `plant`, `remove`: shell of root's, $USER is the user. `found`: the lines that name it.

    `needs`: a program without which the machine has no such way.
    """

    plant: str
    remove: str
    found: tuple[str, ...]
    needs: str = "sh"


PLANTS = (
    Plant(plant="gpasswd -a $USER disk", remove="gpasswd -d $USER disk", found=("group: disk",)),
    Plant(
        plant=f"getent group {_GROUP} || {{ groupadd {_GROUP}; mkdir /run/{NAME}-group; }}; gpasswd -a $USER {_GROUP}",
        remove=f"gpasswd -d $USER {_GROUP}; rmdir /run/{NAME}-group && groupdel {_GROUP}",
        found=(f"group: {_GROUP}",),
    ),
    Plant(
        plant=f"cp /bin/true {_BIN}-setuid; chmod 4755 {_BIN}-setuid",
        remove=f"rm {_BIN}-setuid",
        found=(f"setuid: {_BIN}-setuid",),
    ),
    Plant(
        plant=f"cp /bin/true {_BIN}-capable; python3 -I -c '{_CAPABILITY}; "
        f'os.setxattr("{_BIN}-capable", "security.capability", value)\'',
        remove=f"rm {_BIN}-capable",
        found=(f"capabilities: {_BIN}-capable [{_SYS_ADMIN}]",),
    ),
    Plant(
        plant=f"mkdir {_LIB}; chmod 777 {_LIB}",
        remove=f"rmdir {_LIB}",
        found=(f"directory open to all: {_LIB}",),
    ),
    Plant(plant=f"touch {_ETC}; chmod 666 {_ETC}", remove=f"rm {_ETC}", found=(f"writable: {_ETC}",)),
    Plant(
        plant=f"setsid python3 -I -c '{_LISTEN}; signal.alarm(1800); os.chmod(one.getsockname(), 0o666); one.listen(); "
        f"signal.pause()' </dev/null >/dev/null 2>&1 & echo $! >/run/{NAME}.pid; sleep 3",
        remove=f"kill $(cat /run/{NAME}.pid); rm /run/{NAME}.pid {_SOCKET}",
        found=(f"socket: {_SOCKET}",),
    ),
    # Its programs do not exist, and nothing starts it: systemd does not even read it before the next reload.
    Plant(
        plant=f"printf '[Service]\\nExecStart=-{_TMP} run\\nEnvironmentFile=-{_TMP}-env\\nWorkingDirectory=/var/tmp\\n'"
        f" >{_UNIT}",
        remove=f"rm {_UNIT}",
        found=(f"unit {_UNIT}: {_TMP}", f"unit {_UNIT}: {_TMP}-env", f"directory of {_UNIT}: /var/tmp"),
    ),
    Plant(
        plant=f"mkdir /etc/cron.d && mkdir /run/{NAME}-cron; echo '0 0 29 2 * root {_TMP}' >{_CRON}",
        remove=f"rm {_CRON}; rmdir /run/{NAME}-cron && rmdir /etc/cron.d",
        found=(f"cron {_CRON}: {_TMP}",),
    ),
    Plant(
        plant="chmod o+w /usr/local/sbin",
        remove="chmod o-w /usr/local/sbin",
        found=("PATH: /usr/local/sbin", "directory open to all: /usr/local/sbin"),
    ),
    Plant(
        plant=f"mkdir -p {_SERVICES}; printf '[D-BUS Service]\\nExec={_TMP}\\n' >{_BUS}",
        remove=f"rm {_BUS}; rmdir {_SERVICES} {_SERVICES.rpartition('/')[0]}",
        found=(f"D-Bus service of no package: {_BUS}", f"D-Bus {_BUS}: {_TMP}"),
    ),
    Plant(
        plant=f"echo '{_RULE}' >{_RULES}; sleep 3",
        remove=f"rm {_RULES}",
        found=(f"polkit: {_UNITS}", "systemd-run"),
        needs="pkcheck",
    ),
)


def script(plants: Sequence[Plant], user: str, *, is_removed: bool = False) -> str:
    """Shell of root's that plants the ways for a user, or removes all of them whatever is missing."""
    return "\n".join(
        [f"USER={user}", *(f"{{ {plant.remove if is_removed else plant.plant}; }} 2>&1" for plant in plants), "true"]
    )
