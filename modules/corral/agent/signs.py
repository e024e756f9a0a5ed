"""The signs of a keeper that lives: its lock, and a file that it touches at each round. Both go with a reboot.

And what to do where slurmctld gives none.
"""

from pathlib import Path

from corral.agent.alone import is_held
from corral.agent.hosts import BOX
from corral.agent.spool import BELL
from corral.model.head import Keeping

# What starts the keeper again, and what says why it ended, by whether the machine is a box's.
_MENDED_BY = {
    True: ("/opt/corral/boot.sh", "tail /var/log/corral/corral-agent.log"),
    False: ("systemctl restart corral-agent", "journalctl -u corral-agent"),
}
# The same of slurmctld. A box's machine starts it again if it fails, and boot.sh if it was stopped.
_SLURMCTLD_MENDED_BY = {
    True: ("pkill -9 slurmctld; /opt/corral/boot.sh", "tail /var/log/slurm/slurmctld.log"),
    False: ("systemctl restart slurmctld", "journalctl -u slurmctld"),
}


def lock_of(bell: Path) -> Path:
    """What the keeper that rests at this bell holds."""
    return bell.with_suffix(".lock")


def turned_of(bell: Path) -> Path:
    """What it touches."""
    return bell.with_suffix(".turned")


def keeping(bell: Path = BELL, box: Path = BOX) -> Keeping:
    """Whether a keeper runs, and when one last did what was due."""
    start, log = _MENDED_BY[box.is_dir()]
    return Keeping(runs=is_held(lock_of(bell)), turned=_touched(turned_of(bell)), start=start, log=log)


def silent(box: Path = BOX) -> str:
    """What is wrong where slurmctld does not answer on this head, and what to do."""
    start, log = _SLURMCTLD_MENDED_BY[box.is_dir()]
    return f"slurmctld on the head does not answer - on the head `{start}` starts it, `{log}` says why"


def _touched(file: Path) -> int | None:
    try:
        return int(file.stat().st_mtime)
    except FileNotFoundError:
        return None
