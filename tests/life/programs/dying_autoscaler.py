"""The autoscaler, killed with SIGKILL just before its n-th effect while it processes requests.

Python audits the effects of a program (PEP 578): requests, commands, files renamed and removed.
Usage: dying_autoscaler.py N corral-agent's arguments
"""

import os
import signal
import sys
import threading
from types import FrameType

DONE = {"http.client.send", "subprocess.Popen", "os.rename", "os.remove"}
left = int(sys.argv[1])


def processes_requests(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name == "process_requests" and frame.f_code.co_filename.endswith(
            "corral/agent/autoscaler/reconciler.py"
        ):
            return True
        frame = frame.f_back
    return False


def hear(event: str, _: object) -> None:
    global left
    if event in DONE and threading.current_thread() is threading.main_thread() and processes_requests(sys._getframe()):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


sys.addaudithook(hear)

from corral.agent.__main__ import main  # noqa: E402

sys.exit(main(sys.argv[2:]))
