"""Run commands as an ordinary user who can read this checkout, its Python and its Pulumi.

These may be in directories that only root can pass, whose permissions a test must not change. The command therefore
runs in its own mount namespace, where such directories are empty except for the required paths.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from corral.engine.pulumi.binary import find_pulumi
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
for path in $needed; do
    number=$((number + 1))
    mkdir "$hold/needed/$number"
    mount --bind "$path" "$hold/needed/$number"
done
for path in $closed; do mount -t tmpfs -o mode=755 view "$path"; done
number=0
for path in $needed; do
    number=$((number + 1))
    mkdir -p "$path"
    mount --bind "$hold/needed/$number" "$path"
done
umount -R "$hold"
rmdir "$hold"
exec "$@"
"""


def as_ordinary_user(*, with_range: bool) -> Sequence[str]:
    """The prefix of such a user's command; empty if this process is not root. `with_range`: grant subordinate ids."""
    if os.geteuid() != 0:
        return ()
    pulumi = find_pulumi()
    # Duplicates do no harm: a second mount changes nothing.
    needed = sorted({PROJECT, Path(sys.prefix), Path(sys.base_prefix), *(path.resolve() for path in pulumi.search)})
    closed = sorted({directory for path in needed if (directory := _closed(path))})
    ranges = f"nobody:{_RANGE}\n" if with_range else ""
    view = ("/bin/sh", "-c", _VIEW, "view", ranges, " ".join(map(str, needed)), " ".join(map(str, closed)))
    user = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    return ("unshare", "--mount", "--propagation=private", *view, *user)


def _closed(path: Path) -> Path | None:
    """The first parent directory that other users may not pass."""
    return next((parent for parent in reversed(path.parents) if not parent.stat().st_mode & stat.S_IXOTH), None)
