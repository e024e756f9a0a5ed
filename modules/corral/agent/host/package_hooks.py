"""What packages do beside installing their files, switched off while a boot installs them.

A package starts its daemon, which has no configuration yet. It rebuilds the initramfs, which no package of a boot
changes: the root volume needs no new module. It rebuilds the index of manuals, which a timer does each day. It lets
systemd read all units again, several times: the boot does it once, when all packages are there. An image's own settings
come back, also after a boot that was interrupted.
Sources: deb-systemd-invoke(1p), invoke-rc.d(8); update-initramfs.conf(5); the postinst of Debian's man-db.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from corral.agent.file_install import HEADER, Placement, install

STAND_INS = "/opt/corral/stand-ins"  # first in the PATH of packages' scripts
_SAVED = ".corral-saved"
_SYSTEMCTL = f"""#!/bin/sh
{HEADER}# Packages' scripts find this first: the boot reads the units itself, once.
case "$*" in *daemon-reload*) exit 0 ;; esac
exec /usr/bin/systemctl "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Switch:
    """A file that switches something off. `text`: its content; None if its absence does.

    `of_image`: only if the image has the file.
    """

    path: str
    text: str | None
    mode: int = 0o644
    of_image: bool = True


_SWITCHES = (
    _Switch(path="/usr/sbin/policy-rc.d", text=f"#!/bin/sh\n{HEADER}exit 101\n", mode=0o755, of_image=False),
    _Switch(path="/etc/initramfs-tools/update-initramfs.conf", text=f"{HEADER}update_initramfs=no\n"),
    _Switch(path="/var/lib/man-db/auto-update", text=None),
    _Switch(path=f"{STAND_INS}/systemctl", text=_SYSTEMCTL, mode=0o755, of_image=False),
)


@contextlib.contextmanager
def without_hooks(root: Path = Path("/")) -> Iterator[None]:
    """Switch off what packages do beside installing their files, below this root."""
    for switch in _SWITCHES:
        _off(switch, root)
    try:
        yield
    finally:
        for switch in _SWITCHES:
            _back(switch, root)


def _off(switch: _Switch, root: Path) -> None:
    path, saved = _paths(switch, root)
    exists = path.exists() and path.read_text(encoding="utf-8") != switch.text
    if exists and not saved.exists():
        path.rename(saved)
    if switch.text is not None and (saved.exists() or not switch.of_image):
        install((Placement(path=switch.path, content=switch.text.encode(), mode=switch.mode),), root)


def _back(switch: _Switch, root: Path) -> None:
    path, saved = _paths(switch, root)
    if saved.exists():
        saved.rename(path)
    elif switch.text is not None and path.exists() and path.read_text(encoding="utf-8") == switch.text:
        path.unlink()


def _paths(switch: _Switch, root: Path) -> tuple[Path, Path]:
    path = root / switch.path.lstrip("/")
    return path, path.with_name(path.name + _SAVED)
