"""The keeper, that is killed with SIGKILL just before the n-th thing that it does while it answers slurmctld.

Python itself tells of what a program does to the outside (PEP 578): requests, commands, files renamed and removed.
Usage: dying_keeper.py N corral-agent's arguments
"""

import os
import signal
import sys
import threading
from types import FrameType

DONE = {"http.client.send", "subprocess.Popen", "os.rename", "os.remove"}
left = int(sys.argv[1])


def answers(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name == "answer" and frame.f_code.co_filename.endswith("corral/agent/turn.py"):
            return True
        frame = frame.f_back
    return False


def hear(event: str, _: object) -> None:
    global left
    if event in DONE and threading.current_thread() is threading.main_thread() and answers(sys._getframe()):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


sys.addaudithook(hear)

from corral.agent.__main__ import main  # noqa: E402

sys.exit(main(sys.argv[2:]))
