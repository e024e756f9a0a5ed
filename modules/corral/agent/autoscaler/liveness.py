"""Whether the autoscaler and slurmctld run on this head, and the commands that restart them.

The autoscaler holds a lock and touches a heartbeat file in each cycle. A reboot clears both.
"""

from pathlib import Path

from corral.agent.autoscaler.request_queue import WAKE_SOCKET
from corral.agent.host.base import BOX
from corral.agent.process_lock import is_held
from corral.model.head_report import AutoscalerStatus

# The commands that restart the autoscaler and that show why it ended; True: on a machine of the box.
_AUTOSCALER_COMMANDS = {
    True: ("/opt/corral/boot.sh", "tail /var/log/corral/corral-agent.log"),
    False: ("systemctl restart corral-agent", "journalctl -u corral-agent"),
}
# The same for slurmctld. In the box a supervisor restarts it after a failure, and boot.sh after a stop.
_SLURMCTLD_COMMANDS = {
    True: ("pkill -9 slurmctld; /opt/corral/boot.sh", "tail /var/log/slurm/slurmctld.log"),
    False: ("systemctl restart slurmctld", "journalctl -u slurmctld"),
}


def lock_of(wake_socket: Path) -> Path:
    """The lock of the autoscaler that listens on this socket."""
    return wake_socket.with_suffix(".lock")


def heartbeat_of(wake_socket: Path) -> Path:
    """The file that this autoscaler touches in each cycle."""
    return wake_socket.with_suffix(".heartbeat")


def autoscaler_status(wake_socket: Path = WAKE_SOCKET, box: Path = BOX) -> AutoscalerStatus:
    """Whether an autoscaler runs, when it last completed a cycle, and how to restart it."""
    start, log = _AUTOSCALER_COMMANDS[box.is_dir()]
    return AutoscalerStatus(
        is_running=is_held(lock_of(wake_socket)),
        last_cycle=_touched(heartbeat_of(wake_socket)),
        start_command=start,
        log_command=log,
    )


def slurmctld_problem(box: Path = BOX) -> str:
    """The error message if slurmctld does not answer on this head."""
    start, log = _SLURMCTLD_COMMANDS[box.is_dir()]
    return f"slurmctld on the head does not answer - run `{start}` on the head to restart it, `{log}` to see why"


def _touched(file: Path) -> int | None:
    try:
        return int(file.stat().st_mtime)
    except FileNotFoundError:
        return None
