"""A slurmctld that is started with new files beside the running one, to see whether Slurm takes them.

No release of Slurm can check its files without starting (slurmctld(8) of 22.05 to 26.05), and before 23.11 one that is
told to read bad files ends. So it is started for a moment where it can reach nothing: in a network of its own that has
the head's address, with empty state and without slurmdbd.
"""

import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from corral.agent.hosts import HostError
from corral.model.cluster import ClusterPlan

_SPACES = ("unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
_SCRIPT = """
set -eu
conf=$1 host=$2 address=$3 user=$4 sbin=$5
ip link set lo up
ip address add "$address/32" dev lo
hostname "$host"
for place in /var/lib/corral /var/log/slurm; do
    mkdir -p "$place"
    mount -t tmpfs tmpfs "$place"
done
mkdir /var/lib/corral/slurmctld
chown "$user" /var/lib/corral/slurmctld /var/log/slurm
mount --bind "$conf" /etc/slurm
"$sbin/slurmctld" -D >/var/log/slurm/trial 2>&1 &
try=0
until scontrol ping 2>/dev/null | grep -q "is UP"; do
    try=$((try + 1))
    if [ $try -gt 150 ] || ! kill -0 $! 2>/dev/null; then
        grep -E "fatal|error" /var/log/slurm/trial | tail -n 4 >&2 || true
        exit 1
    fi
    sleep 0.1
done
"""
_PID_FILE = re.compile(rb"^SlurmctldPidFile=.*$", re.MULTILINE)
_NOT_OVER = re.compile(rb"^AccountingStorage.*\n", re.MULTILINE)
_HARMLESS = ("pmix", "accounting information", "state file", "gettimeofday", "without -c")


def refusal(
    plan: ClusterPlan, files: Mapping[str, bytes], run: Callable[[Sequence[str]], str], root: Path = Path("/")
) -> str:
    """Why slurmctld would not start with these files in the place of those of that name; empty if it would."""
    with tempfile.TemporaryDirectory(prefix="corral-trial-", dir=root / "var/tmp") as name:
        trial = Path(name) / "slurm"
        shutil.copytree(root / "etc/slurm", trial)
        for file, content in files.items():
            (trial / file).write_bytes(content)
        _isolate(trial)
        Path(name).chmod(0o755)
        own = (str(trial), plan.head.host_name, str(plan.head.address), "slurm", plan.image.slurm_sbin)
        try:
            run((*_SPACES, "/bin/sh", "-c", _SCRIPT, "trial", *own))
        except HostError as error:
            return _reason(str(error))
    return ""


def _isolate(trial: Path) -> None:
    host, slurm = trial / "host.conf", trial / "slurm.conf"
    host.write_bytes(_PID_FILE.sub(b"SlurmctldPidFile=/var/log/slurm/trial.pid", host.read_bytes()))
    slurm.write_bytes(_NOT_OVER.sub(b"", slurm.read_bytes()))


def _reason(said: str) -> str:
    """What slurmctld said that it ended for."""
    lines = [line.strip() for line in said.splitlines() if "error:" in line or "fatal:" in line]
    told = [line for line in lines if not any(word in line for word in _HARMLESS)]
    return "; ".join(line.rpartition("slurmctld: ")[2] for line in told) or said.splitlines()[-1]
