"""The parts of an EC2 image that the host's system may lack: the image's user and the settings of its sshd.

Machines run the host's /usr/sbin/sshd if it exists. A machine with a single user runs no sshd, because sshd drops its
groups at each login, which requires several users. The agent adds the cluster's settings.
Sources: /etc/ssh/sshd_config of Ubuntu 24.04's openssh-server; 60-cloudimg-settings.conf of its cloud images;
cloud-init's documentation, modules ssh (host keys) and users_groups (the default user).
"""

from __future__ import annotations

import shutil
from pathlib import Path

_SETTINGS = """# As on Ubuntu 24.04.
Include /etc/ssh/sshd_config.d/*.conf
KbdInteractiveAuthentication no
UsePAM yes
X11Forwarding yes
PrintMotd no
AcceptEnv LANG LC_*
Subsystem sftp /usr/lib/openssh/sftp-server
"""
_OF_THE_IMAGE = "PasswordAuthentication no\n"
SCRIPT = "sshd.sh"
# One host key, where EC2's machines have three: an RSA key takes longer than the rest of a machine's start.
_START = """#!/bin/sh
# Starts sshd before user data runs. The first boot creates the host key; the last mv makes it complete.
[ -x /usr/sbin/sshd ] || exit 0
key=/etc/ssh/ssh_host_ed25519_key
if [ ! -e "$key" ]; then
    rm -f "$key.new" "$key.new.pub"
    ssh-keygen -q -t ed25519 -N "" -C "root@$(hostname)" -f "$key.new"
    mv "$key.new.pub" "$key.pub"
    mv "$key.new" "$key"
fi
mkdir -p /run/sshd
exec /usr/sbin/sshd -E /var/log/auth.log
"""
_FIRST_UID = 1000  # of ordinary users


def write_sshd_script(disk: Path) -> None:
    """Write the script that starts sshd at every boot of the machine with this disk."""
    (disk / "box" / SCRIPT).write_text(_START, encoding="utf-8")


def write_image_settings(etc: Path, user: str) -> None:
    """Replace the host's sshd settings in this copy of /etc with the image's, and add the image's user."""
    _add_user(etc, user)
    ssh = etc / "ssh"
    drop_ins = ssh / "sshd_config.d"
    shutil.rmtree(drop_ins, ignore_errors=True)
    drop_ins.mkdir(parents=True)
    (ssh / "sshd_config").unlink(missing_ok=True)
    (ssh / "sshd_config").write_text(_SETTINGS, encoding="utf-8")
    (drop_ins / "60-cloudimg-settings.conf").write_text(_OF_THE_IMAGE, encoding="utf-8")


def _add_user(etc: Path, name: str) -> None:
    """Add a user with a group, a home and no password, unless the name exists."""
    users, groups = ([line.split(":") for line in _lines(etc / kind)] for kind in ("passwd", "group"))
    if name in {fields[0] for fields in users}:
        return
    taken = {fields[2] for fields in (*users, *groups) if len(fields) > 2}
    uid = next(uid for uid in range(_FIRST_UID, 1 << 16) if str(uid) not in taken)
    _append(etc / "passwd", f"{name}:x:{uid}:{uid}::/home/{name}:/bin/bash")
    _append(etc / "group", f"{name}:x:{uid}:")
    _append(etc / "shadow", f"{name}:*:::::::")


def _lines(database: Path) -> list[str]:
    return database.read_text(encoding="utf-8").splitlines() if database.exists() else []


def _append(database: Path, line: str) -> None:
    database.write_text("".join(f"{one}\n" for one in (*_lines(database), line)), encoding="utf-8")
