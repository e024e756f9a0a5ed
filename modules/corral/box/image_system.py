"""What an image on EC2 has and this machine's own system, which machines are, may not have: its user, and its sshd.

The program is this system's own; a machine without /usr/sbin/sshd has none, nor has one whose users are all one: sshd
gives up its groups for each who logs in, which takes more users. What is the cluster's, the agent adds.
Sources: /etc/ssh/sshd_config of Ubuntu 24.04's openssh-server; 60-cloudimg-settings.conf of its cloud images;
cloud-init's documentation, modules ssh (host keys) and users_groups (the default user).
"""

from __future__ import annotations

import shutil
from pathlib import Path

_SETTINGS = """# As Ubuntu 24.04 has it.
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
# A key of one kind, where EC2's machines have three: that of RSA takes longer than the rest of a machine's start.
_START = """#!/bin/sh
# sshd, which is there before user data are followed. The key is made at the first boot, whole or not at all.
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
_FIRST_NUMBER = 1000  # of ordinary users


def settle_sshd(disk: Path) -> None:
    """Lets the machine with this disk start its sshd at every boot."""
    (disk / "box" / SCRIPT).write_text(_START, encoding="utf-8")


def lay_image_settings(settings: Path, user: str) -> None:
    """Gives this copy of /etc an image's user and its settings of sshd: those of this system's are for others."""
    _add_user(settings, user)
    place = settings / "ssh"
    own = place / "sshd_config.d"
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir(parents=True)
    (place / "sshd_config").unlink(missing_ok=True)
    (place / "sshd_config").write_text(_SETTINGS, encoding="utf-8")
    (own / "60-cloudimg-settings.conf").write_text(_OF_THE_IMAGE, encoding="utf-8")


def _add_user(settings: Path, name: str) -> None:
    """With a group, a home, and no password. Who has the name already stays as he is."""
    users, groups = ([line.split(":") for line in _lines(settings / kind)] for kind in ("passwd", "group"))
    if name in {fields[0] for fields in users}:
        return
    taken = {fields[2] for fields in (*users, *groups) if len(fields) > 2}
    number = next(number for number in range(_FIRST_NUMBER, 1 << 16) if str(number) not in taken)
    _append(settings / "passwd", f"{name}:x:{number}:{number}::/home/{name}:/bin/bash")
    _append(settings / "group", f"{name}:x:{number}:")
    _append(settings / "shadow", f"{name}:*:::::::")


def _lines(database: Path) -> list[str]:
    return database.read_text(encoding="utf-8").splitlines() if database.exists() else []


def _append(database: Path, line: str) -> None:
    database.write_text("".join(f"{one}\n" for one in (*_lines(database), line)), encoding="utf-8")
