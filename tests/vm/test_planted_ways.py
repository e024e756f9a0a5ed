"""Each way to root that `make vm-life` plants is found by its program, and nothing of it stays.

In a root directory that only this test sees, with this machine's programs; systemd and polkit do not run there.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tools.vm_life import ways_to_root
from tools.vm_life.planted_ways import NAME, PLANTS, script

from steps import step

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="planting needs root: run the tests as root"),
]
PLANTED = [plant for plant in PLANTS if plant.needs == "sh"]
USER = "corral-user"
# system DIRECTORY PROGRAM: a shell of root's in a root directory of its own.
SYSTEM = f"""set -e
mount -t tmpfs -o mode=755 system "$1"
cd "$1"
mkdir usr
mount --bind /usr usr
for hidden in usr/local usr/share usr/include; do mount -t tmpfs -o mode=755 hidden $hidden; done
for name in bin lib lib64 sbin; do ln -s usr/$name $name; done
mkdir -p dev etc/systemd/system proc run tmp usr/local/bin usr/local/sbin usr/local/share var/lib var/tmp
chmod 1777 tmp var/tmp
mount --rbind /dev dev
mount --rbind /proc proc
printf 'root:x:0:0::/:/bin/sh\\n{USER}:x:2000:2000::/:/bin/sh\\n' >etc/passwd
printf 'root:x:0:\\ndisk:x:6:\\n{USER}:x:2000:\\n' >etc/group
cat "$2" >run/ways.py
exec chroot . sh
"""
LOOK = f"""umask 22
python3 -I /run/ways.py paths >/run/list
setpriv --reuid={USER} --regid=2000 --init-groups python3 -I /run/ways.py files commands --list /run/list --groups \
'disk docker' | grep -v '^socket: @'
"""
LEFT = f"""find / -xdev -name '*{NAME}*' -o -name cron.d
find /usr/local -mindepth 2
id -Gn {USER}
getent group docker"""


def test_each_planted_way_is_found_and_removed(tmp_path: Path) -> None:
    plant, remove = (script(PLANTED, USER, is_removed=is_removed) for is_removed in (False, True))
    parts = [LOOK, f"{{ {plant}; }} >/dev/null 2>&1", LOOK, f"{{ {remove}; }} >/dev/null", LOOK, LEFT]
    commands = "\necho ---\n".join(parts)
    shell = ("unshare", "--mount", "--propagation=private", "sh", "-c", SYSTEM, "system", str(tmp_path))
    done = subprocess.run(
        (*shell, ways_to_root.__file__), input=commands, capture_output=True, text=True, check=False, timeout=100
    )
    before, _, found, _, after, left = (part.split("\n") for part in done.stdout.split("---\n"))
    with step("each planted way is found"):
        lines = {line for one in PLANTED for line in one.found}
        assert (sorted(lines - set(found)), done.stderr) == ([], "")
    with step("without them none of these lines is found, before and afterwards"):
        assert [line for line in (*before, *after) if line in lines] == []
    with step("nothing stays"):
        assert left == [USER, ""]
