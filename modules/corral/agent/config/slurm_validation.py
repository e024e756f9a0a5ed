"""Validate Slurm's files: start a second slurmctld with them, next to the running one.

No release of Slurm can check its files without starting (slurmctld(8) of 22.05 to 26.05), and before 23.11 slurmctld
exits if it is reconfigured with bad files. The second one runs briefly and isolated: in its own network namespace with
the head's address, with empty state and without slurmdbd.
"""

import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from corral.agent.host.base import HostError
from corral.model.cluster import ClusterPlan

NAMESPACES = ("unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
_SCRIPT = """
set -eu
conf=$1 host=$2 address=$3 user=$4 sbin=$5
ip link set lo up
ip address add "$address/32" dev lo
hostname "$host"
for path in /var/lib/corral /var/log/slurm; do
    mkdir -p "$path"
    mount -t tmpfs tmpfs "$path"
done
mkdir /var/lib/corral/slurmctld
chown "$user" /var/lib/corral/slurmctld /var/log/slurm
mount --bind "$conf" /etc/slurm
"$sbin/slurmctld" -D >/var/log/slurm/validation 2>&1 &
try=0
until scontrol ping 2>/dev/null | grep -q "is UP"; do
    try=$((try + 1))
    if [ $try -gt 150 ] || ! kill -0 $! 2>/dev/null; then
        grep -E "fatal|error" /var/log/slurm/validation | tail -n 4 >&2 || true
        exit 1
    fi
    sleep 0.1
done
"""
_PID_FILE = re.compile(rb"^SlurmctldPidFile=.*$", re.MULTILINE)
_ACCOUNTING = re.compile(rb"^AccountingStorage.*\n", re.MULTILINE)
_HARMLESS = ("pmix", "accounting information", "state file", "gettimeofday", "without -c")


def why_refused(
    plan: ClusterPlan, files: Mapping[str, bytes], run: Callable[[Sequence[str]], str], root: Path = Path("/")
) -> str:
    """Why slurmctld would not start with these files replaced; empty if it would."""
    with tempfile.TemporaryDirectory(prefix="corral-validate-", dir=root / "var/tmp") as name:
        directory = Path(name) / "slurm"
        shutil.copytree(root / "etc/slurm", directory)
        for file, content in files.items():
            (directory / file).write_bytes(content)
        _isolate(directory)
        Path(name).chmod(0o755)
        own = (str(directory), plan.head.host_name, str(plan.head.address), "slurm", plan.image.slurm_sbin)
        try:
            run((*NAMESPACES, "/bin/sh", "-c", _SCRIPT, "validate", *own))
        except HostError as error:
            return _reason(str(error))
    return ""


def _isolate(directory: Path) -> None:
    host, slurm = directory / "host.conf", directory / "slurm.conf"
    host.write_bytes(_PID_FILE.sub(b"SlurmctldPidFile=/var/log/slurm/validation.pid", host.read_bytes()))
    slurm.write_bytes(_ACCOUNTING.sub(b"", slurm.read_bytes()))


def _reason(output: str) -> str:
    """The errors in slurmctld's output because of which it exited."""
    lines = [line.strip() for line in output.splitlines() if "error:" in line or "fatal:" in line]
    relevant = [line for line in lines if not any(word in line for word in _HARMLESS)]
    return "; ".join(line.rpartition("slurmctld: ")[2] for line in relevant) or output.splitlines()[-1]
