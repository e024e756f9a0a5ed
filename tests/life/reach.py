"""Becoming an ordinary user for whom this checkout, its Python and its Pulumi are in reach, wherever they lie.

Root's own places are closed to others, and a test must not open them. So a command gets a view of the file system in
which the closed directories are empty but for what it needs; nobody else sees that view.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from corral.engine.binary import find_pulumi
from environments import PROJECT

NOBODY = 65534
_RANGE = "200000:65536"
# view RANGES COUNT NEEDED... CLOSED... -- COMMAND...: RANGES is the text of /etc/subuid and /etc/subgid.
_VIEW = r"""
set -eu
hold=$(mktemp -d)
mount -t tmpfs hold "$hold"
printf '%s' "$1" >"$hold/ranges"
for file in /etc/subuid /etc/subgid; do
    if [ -e "$file" ]; then mount --bind "$hold/ranges" "$file"; fi
done
needed=$2 closed=$3
shift 3
mkdir "$hold/needed"
number=0
for place in $needed; do
    number=$((number + 1))
    mkdir "$hold/needed/$number"
    mount --bind "$place" "$hold/needed/$number"
done
for place in $closed; do mount -t tmpfs -o mode=755 view "$place"; done
number=0
for place in $needed; do
    number=$((number + 1))
    mkdir -p "$place"
    mount --bind "$hold/needed/$number" "$place"
done
umount -R "$hold"
rmdir "$hold"
exec "$@"
"""


def as_ordinary_user(*, with_range: bool) -> Sequence[str]:
    """What precedes a command of such a user: nothing where this process is one. `with_range`: of subordinate ids."""
    if os.geteuid() != 0:
        return ()
    pulumi = find_pulumi()
    # Twice the same path: mounting it again changes nothing.
    needed = sorted({PROJECT, Path(sys.prefix), Path(sys.base_prefix), *(place.resolve() for place in pulumi.search)})
    closed = sorted({place for path in needed if (place := _closed(path))})
    ranges = f"nobody:{_RANGE}\n" if with_range else ""
    view = ("/bin/sh", "-c", _VIEW, "view", ranges, " ".join(map(str, needed)), " ".join(map(str, closed)))
    user = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    return ("unshare", "--mount", "--propagation=private", *view, *user)


def _closed(path: Path) -> Path | None:
    """The first directory on the way there that others may not pass."""
    return next((place for place in reversed(path.parents) if not place.stat().st_mode & stat.S_IXOTH), None)
